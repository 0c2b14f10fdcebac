package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

// Secrets of the forms that their providers use; none is real.
const (
	anthropicKey = "sk-ant-api03-0123456789abcdefABCDEF"
	claudeToken  = "sk-ant-oat01-0123456789abcdefABCDEF"
	openaiKey    = "sk-proj-0123456789abcdefABCDEF"
	githubToken  = "ghp_0123456789abcdefABCDEF0123456789"
)

// holds fails unless the vault has exactly these bindings, with these secrets.
func (o owner) holds(want map[string]string) {
	o.t.Helper()
	v := vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...)
	if err := v.Unlock([]byte(testPassphrase)); err != nil && len(want) > 0 {
		o.t.Fatal(err)
	}
	all, _ := v.Bindings()
	for _, b := range all {
		c, err := v.Credential(b.Name)
		if err != nil || c.Secret.Reveal() != want[b.Name] {
			o.t.Errorf("%s is bound to something else: %v", b.Name, err)
		}
	}
	if len(all) != len(want) {
		o.t.Errorf("there are %d bindings, want %d: %v", len(all), len(want), all)
	}
}

const (
	anthropicBinding = "api_key/aileron-connector-anthropic/default"
	claudeBinding    = "bearer/aileron-connector-anthropic-oauth/default"
	openaiBinding    = "bearer/aileron-connector-openai/default"
	gitBinding       = "bearer/aileron-connector-github/default"
)

// A conversation from nothing: what is typed is nowhere on the screen, and the last line launches the agent.
func TestSetupIsOneConversation(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	out, errs, code := o.converse([]string{"claude", anthropicKey, githubToken, "n",
		testPassphrase, testPassphrase + "x", testPassphrase, testPassphrase, "y", "?", "y"}, "setup", "--sandbox=off")
	if code != 0 || out != "aileron launch --sandbox=off claude\n" {
		t.Fatalf("it ends with %d, %q: %s", code, out, errs)
	}
	o.holds(map[string]string{anthropicBinding: anthropicKey, gitBinding: githubToken})
	for _, want := range []string{"8 to 1024 bytes", "the two entries differ", "vault created",
		"bound " + anthropicBinding, "or the token that claude setup-token prints",
		"writes      2 operations with POST: messages.create, messages.count_tokens\n",
		"install these 2 connectors and grant this?", "api.github.com/repos/{owner}/{repo}/readme",
		"aileron vault unlock --for 8h"} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q: %s", want, errs)
		}
	}
	// The summary is a screen, and one operation is on it only because of the question mark.
	if before, _, _ := strings.Cut(errs, "grant this?"); strings.Contains(before, "/readme") ||
		!strings.Contains(before, "  hosts       api.github.com, github.com, ") || strings.Count(before, "\n") > 60 {
		t.Errorf("the summary is %s", before)
	}
	const asks = "[approval]\napprove = [\"POST *\", \"PUT *\", \"PATCH *\", \"DELETE *\"]\n"
	config := filepath.Join(o.Flag, "config.toml")
	if raw, err := os.ReadFile(config); string(raw) != asks || !strings.Contains(errs, "aileron approval list -f") {
		t.Errorf("config.toml is %q, %v", raw, err)
	}
	before := o.snapshot()
	out, errs, code = o.converse([]string{""}, "setup", "claude", "--sandbox=off")
	if code != 0 || !strings.Contains(errs, "anthropic is bound already, as "+anthropicBinding) ||
		!strings.Contains(errs, "github is bound already") || strings.Contains(errs, "passphrase must") {
		t.Errorf("a second run ends with %d, %q: %s", code, out, errs)
	}
	if after := o.snapshot(); after != before {
		t.Errorf("a second run changed the home:\n%s\n%s", before, after)
	}
}

// Of a connector with two identities setup asks for one, and the launch line has it: with both no session starts.
func TestSetupChoosesAnIdentity(t *testing.T) {
	o := newOwner(t)
	setup := []string{"setup", "claude", "--sandbox=off"}
	o.ok(append(setup, "--yes", "--key-file", o.file("key", anthropicKey+"\n"))...)
	o.ok("connector", "install", "github", "npm", "--yes")
	for _, identity := range []string{"work", "home"} {
		o.ok("binding", "setup", "github", "--identity", identity, "--secret-file", o.file("token", githubToken))
	}
	before := o.snapshot()
	for _, c := range []struct {
		binds, want string
	}{
		{"", "choose a credential for github://alrubinger/aileron-connector-github: it has the identities home, work; " +
			"hint: choose one with --bind github=home"},
		{"github=play", "use github://alrubinger/aileron-connector-github with the identity \"play\": it is not bound"},
		{"github=home npm=work", "use the binding of github://alrubinger/aileron-connector-npm: " +
			"no such connector is installed, or it needs no credential"},
		{"github", "--bind is \"github\"; it must be CONNECTOR=IDENTITY"},
	} {
		args := append(setup, "--yes")
		for bind := range strings.FieldsSeq(c.binds) {
			args = append(args, "--bind", bind)
		}
		if _, errs, code := o.run(args...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%q ends with %d, want %q: %s", args, code, c.want, errs)
		}
	}
	const line = "aileron launch --sandbox=off --bind github=work claude"
	if out := o.ok(append(setup, "--yes", "--bind", "github=work")...); strings.TrimSpace(out) != line {
		t.Errorf("it prints %q, want %q", out, line)
	}
	out, errs, code := o.converse([]string{"play", "work", "n"}, setup...)
	if code != 0 || strings.TrimSpace(out) != line ||
		!strings.Contains(errs, "identity of github: home or work? [home]") ||
		!strings.Contains(errs, "github is bound already, as bearer/aileron-connector-github/work") {
		t.Errorf("on a terminal it ends with %d, %q: %s", code, out, errs)
	}
	if after := o.snapshot(); after != before {
		t.Errorf("to choose changes the home:\n%s\n%s", before, after)
	}
}

// Without a conversation a flag has writes wait for an approval, and what config.toml has already is not replaced.
func TestSetupKeepsThatWritesWait(t *testing.T) {
	o := newOwner(t)
	args := []string{"setup", "claude", "--yes", "--sandbox=off", "--ask-before-writes", "--key-file",
		o.file("key", anthropicKey)}
	config := filepath.Join(o.Flag, "config.toml")
	must.Do(t, os.WriteFile(config, []byte("[approval]\napprove = [\"POST /x\"]\n"), 0o600))
	o.fails("config.toml has another approve", args...)
	must.Do(t, os.WriteFile(config, []byte("# mine\n[approval]\nhold = \"5s\"\n"), 0o600))
	for range 2 {
		o.ok(args...)
		const want = "# mine\n[approval]\napprove = [\"POST *\", \"PUT *\", \"PATCH *\", \"DELETE *\"]\nhold = \"5s\"\n"
		if raw, err := os.ReadFile(config); string(raw) != want {
			t.Errorf("config.toml is %q, %v", raw, err)
		}
	}
	must.Do(t, os.WriteFile(config, []byte("[approval]\napprove = [\"WRITES\"]\n"), 0o600))
	o.fails("approve of [approval] in config.toml", "proxy")
}

// snapshot is every file of the store and the vault.
func (o owner) snapshot() string {
	o.t.Helper()
	var all strings.Builder
	for _, dir := range []string{"store/connectors", "vault"} {
		_ = filepath.WalkDir(filepath.Join(o.Flag, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // there is none yet
			}
			data := must.Get(os.ReadFile(path))(o.t)
			all.WriteString(path + " " + string(data) + "\n")
			return nil
		})
	}
	return all.String()
}

func TestSetupTakesFilesFromAScript(t *testing.T) {
	o := newOwner(t)
	key, token := o.file("key", claudeToken+"\n"), o.file("token", githubToken+"\n")
	args := []string{"setup", "claude", "--yes", "--sandbox=off", "--key-file", key, "--github-token-file", token,
		"--github-graphql"}
	out, errs, code := o.run(args...)
	if code != 0 || out != "aileron launch --sandbox=off claude\n" || strings.Contains(errs, "warning") {
		t.Fatalf("it ends with %d, %q: %s", code, out, errs)
	}
	want := map[string]string{claudeBinding: claudeToken, gitBinding: githubToken,
		"bearer/aileron-connector-github-graphql/default": githubToken}
	o.holds(want)
	before := o.snapshot()
	o.ok(args...)
	o.ok("setup", "claude", "--yes", "--sandbox=off")
	if after := o.snapshot(); after != before {
		t.Errorf("again, it changes the home:\n%s\n%s", before, after)
	}
	// Another agent adds its own, without a passphrase.
	o.env = nil
	got := decode[struct {
		Agent, Launch string
		Bindings      []string
	}](t, o.ok("setup", "codex", "--yes", "--sandbox=off", "--json", "--key-file", o.file("openai", openaiKey)))
	if got.Agent != "codex" || got.Launch != "aileron launch --sandbox=off codex" || !slices.Equal(got.Bindings,
		[]string{openaiBinding}) {
		t.Errorf("codex is set up as %+v", got)
	}
	want[openaiBinding] = openaiKey
	o.holds(want)
}

func TestSetupKnowsTheProviderOfAKey(t *testing.T) {
	for _, c := range []struct{ agent, key, want, warning string }{
		{"claude", anthropicKey, anthropicBinding, ""},
		{"claude", claudeToken, claudeBinding, ""},
		{"claude", openaiKey, anthropicBinding, "but like the OpenAI API key"},
		{"codex", openaiKey, openaiBinding, ""},
		{"codex", anthropicKey, openaiBinding, "but like the Anthropic API key"},
		{"opencode", anthropicKey, anthropicBinding, ""},
		{"opencode", openaiKey, openaiBinding, ""},
		{"pi", openaiKey, openaiBinding, ""},
		{"opencode", "sk-or-v1-0123456789abcdef", "bearer/aileron-connector-openrouter/default", ""},
	} {
		o := newOwner(t)
		_, errs, code := o.run("setup", c.agent, "--yes", "--sandbox=off", "--key-file", o.file("key", c.key))
		if code != 0 || strings.Contains(errs, "warning") != (c.warning != "") || !strings.Contains(errs, c.warning) ||
			strings.Contains(errs, c.key[len(c.key)-8:]) {
			t.Errorf("%s with %.6s… ends with %d: %s", c.agent, c.key, code, errs)
			continue
		}
		if !strings.Contains(errs, "bound "+c.want) {
			t.Errorf("%s with %.6s… binds %s, want %s", c.agent, c.key, errs, c.want)
		}
	}
}

func TestSetupAsksAboutAKeyOfAnotherProvider(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	_, errs, code := o.converse([]string{openaiKey, "n", "short", anthropicKey, "", testPassphrase, testPassphrase, "",
		"y"}, "setup", "claude", "--sandbox=off")
	if code != 0 || !strings.Contains(errs, "but like the OpenAI API key; use it anyway?") ||
		!strings.Contains(errs, "fewer than 8 bytes") {
		t.Fatalf("it ends with %d: %s", code, errs)
	}
	o.holds(map[string]string{anthropicBinding: anthropicKey})
}

// Without an engine nothing is asked for first, and nothing is made unless the person goes on without an image.
func TestSetupSaysFirstThatThereIsNoEngine(t *testing.T) {
	o := newOwner(t)
	o.env = map[string]string{"DOCKER_HOST": "unix://" + filepath.Join(t.TempDir(), "none.sock")}
	const asked = "set up the rest, without an image? [y/N]"
	shown, code := o.dialogue([]string{"\n"}, "setup", "claude", "--sandbox=docker")
	if code != 1 || !strings.Contains(shown, asked) || strings.Contains(shown, "API key") {
		t.Errorf("declined, it ends with %d: %s", code, shown)
	}
	if made := o.snapshot(); made != "" {
		t.Errorf("it made %s", made)
	}
	shown, code = o.dialogue([]string{"y\n", anthropicKey + "\n", "\n", testPassphrase + "\n", testPassphrase + "\n",
		"\n", "y\n"}, "setup", "claude", "--sandbox=docker")
	if code != 0 || !strings.Contains(shown, "once there is an engine") {
		t.Errorf("without an image it ends with %d: %s", code, shown)
	}
	o.holds(map[string]string{anthropicBinding: anthropicKey})
	cmd := o.program("setup", "codex", "--yes", "--sandbox=docker", "--key-file", "/nonexistent")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "find an engine") {
		t.Errorf("a script gets %v: %s", err, out)
	}
}

// Whatever is wrong is one line, and nothing is made.
func TestSetupRefusesBadInputAndMakesNothing(t *testing.T) {
	key := func(o owner) string { return o.file("key", anthropicKey) }
	for name, c := range map[string]struct {
		want string
		args func(o owner) []string
	}{
		"no terminal": {"there is no terminal", func(owner) []string { return []string{"setup", "claude"} }},
		"no agent": {"takes an agent: claude, codex, goose, opencode, pi",
			func(owner) []string { return []string{"setup", "--yes"} }},
		"unknown agent": {`there is no agent "vim"`, func(owner) []string { return []string{"setup", "vim", "--yes"} }},
		"two agents":    {"takes one agent", func(owner) []string { return []string{"setup", "claude", "codex"} }},
		"no key":        {"--key-file FILE", func(owner) []string { return []string{"setup", "claude", "--yes"} }},
		"no such key file": {"no such file",
			func(owner) []string { return []string{"setup", "claude", "--yes", "--key-file", "/nonexistent"} }},
		"short key": {"fewer than 8 bytes", func(o owner) []string {
			return []string{"setup", "claude", "--yes", "--key-file", o.file("short", "sk-ant")}
		}},
		"foreign provider": {"is none of claude", func(o owner) []string {
			return []string{"setup", "claude", "--yes", "--provider", "openai", "--key-file", key(o)}
		}},
		"unclear provider": {"--provider", func(o owner) []string {
			return []string{"setup", "opencode", "--yes", "--key-file", o.file("odd", "some-odd-key-0123456789")}
		}},
		"bad GitHub token": {"read --github-token-file", func(o owner) []string {
			return []string{"setup", "claude", "--yes", "--key-file", key(o), "--github-token-file",
				o.file("bad", "a\tb c d e f g")}
		}},
		"short passphrase": {"8 to 1024 bytes", func(o owner) []string {
			return []string{"setup", "claude", "--yes", "--key-file", key(o), "--passphrase-file", o.file("short", "short")}
		}},
		"no passphrase": {"none was given", func(o owner) []string {
			delete(o.env, "AILERON_VAULT_PASSPHRASE")
			return []string{"setup", "claude", "--yes", "--key-file", key(o)}
		}},
		"unknown engine": {"--sandbox",
			func(owner) []string { return []string{"setup", "claude", "--yes", "--sandbox", "xen"} }},
	} {
		o := newOwner(t)
		o.fails(c.want, c.args(o)...)
		if made := o.snapshot(); made != "" {
			t.Errorf("%s: it made %s", name, made)
		}
	}
}

// Both connectors of Anthropic's would put a credential into the same request.
func TestSetupRefusesASecondCredentialOfOneProvider(t *testing.T) {
	o := newOwner(t)
	o.ok("connector", "install", "anthropic", "--yes")
	before := o.snapshot()
	o.fails("aileron connector remove", "setup", "claude", "--yes", "--sandbox=off", "--key-file",
		o.file("key", claudeToken))
	if after := o.snapshot(); after != before {
		t.Errorf("it changed the home: %s", after)
	}
	o.ok("setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey))
	o.holds(map[string]string{anthropicBinding: anthropicKey})
}

// A conversation that ends early, by Ctrl-C or the end of the input, leaves nothing, and the next one begins anew.
func TestAnInterruptedSetupLeavesNothing(t *testing.T) {
	answers := []string{"claude", anthropicKey, githubToken, "n", testPassphrase, testPassphrase, "", "y"}
	breaksOff := func(n int, end string, want int) {
		t.Helper()
		o := newOwner(t)
		o.env = nil
		shown, code := o.breaksOff(answers[:n], end, "setup", "--sandbox=off")
		if code != want {
			t.Errorf("after %d answers and %q it ends with %d, want %d: %s", n, end, code, want, shown)
		}
		if made := o.snapshot(); made != "" {
			t.Errorf("after %d answers and %q it made %s", n, end, made)
		}
	}
	for n := range answers {
		breaksOff(n, "\x03", 130)
	}
	breaksOff(0, "\x04", 1)
}

// A model on this machine needs no key, and no vault.
func TestSetupOfALocalModelNeedsNoKey(t *testing.T) {
	o := newOwner(t)
	o.ok("setup", "opencode", "--yes", "--sandbox=off", "--provider", "local-openai")
	o.ok("setup", "opencode", "--yes", "--sandbox=off")
	if got := o.ok("connector", "list"); !strings.Contains(got, "local-openai") {
		t.Errorf("installed: %s", got)
	}
	o.holds(nil)
}

// A setup that was killed between its steps goes on: what is there stays.
func TestSetupGoesOnWhereItStopped(t *testing.T) {
	args := func(o owner) []string {
		return []string{"setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey),
			"--github-token-file", o.file("token", githubToken)}
	}
	for name, before := range map[string][][]string{
		"the vault":               {{"vault", "init"}},
		"a connector":             {{"vault", "init"}, {"connector", "install", "anthropic", "--yes"}},
		"both":                    {{"vault", "init"}, {"connector", "install", "anthropic", "github", "--yes"}},
		"connectors and no vault": {{"connector", "install", "github", "anthropic", "--yes"}},
	} {
		o := newOwner(t)
		for _, command := range before {
			o.ok(command...)
		}
		if _, errs, code := o.run(args(o)...); code != 0 {
			t.Errorf("%s: it ends with %d: %s", name, code, errs)
			continue
		}
		o.holds(map[string]string{anthropicBinding: anthropicKey, gitBinding: githubToken})
	}
}
