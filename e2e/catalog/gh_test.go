package catalog

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Each command of testdata/gh.txt works with github alone, with github-graphql beside it, or with neither, as
// docs/connectors.md has it.
func TestTheManualSaysWhichCommandsOfGhWork(t *testing.T) {
	if _, err := exec.LookPath("gh"); err != nil {
		harness.Need(t, "gh: scripts/prepare --tests installs it")
	}
	o := services.Start(t, "", "", stub.Script{})
	alone, both := ghUser(t, o, "github"), ghUser(t, o, "github", "github-graphql")
	manual := string(must.Get(os.ReadFile("../../docs/connectors.md"))(t))
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/gh.txt"))(t))) {
		needs, command, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || line[0] == '#' {
			continue
		}
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			row := map[string]string{"github": "| with `github` |", "graphql": "| with `github-graphql` too |",
				"refused": "| with neither |"}[needs]
			_, text, _ := strings.Cut(manual, row)
			text, _, _ = strings.Cut(text, "\n")
			noun, rest, _ := strings.Cut(strings.TrimPrefix(command, "gh "), " ")
			verb, _, _ := strings.Cut(rest, " ")
			if !strings.Contains(text, "`"+noun+"`") && !strings.Contains(text, "`"+noun+" "+verb+"`") {
				t.Errorf("the row %q of the manual does not name %s %s", row, noun, verb)
			}
			switch needs {
			case "github":
				alone.works(t, command)
			case "graphql":
				alone.denied(t, command)
				both.works(t, command)
			default:
				both.denied(t, command)
			}
		})
	}
}

// user is someone with a session without a sandbox, and a clone of acme/tool.
type user struct {
	env  []string
	repo string
}

func ghUser(t *testing.T, o *services.Origin, connectors ...string) user {
	t.Helper()
	p := newPerson(t)
	secrets := filepath.Join(t.TempDir(), "secrets")
	must.Do(t, os.WriteFile(secrets, []byte(strings.Join(connectors, "="+token+"\n")+"="+token+"\n"), 0o600))
	install := append(append([]string{"connector", "install"}, connectors...), "--yes", "--secrets-file", secrets)
	if out, errs, code := p.run(install...); code != 0 {
		t.Fatalf("aileron %q ends with %d\n%s%s", install, code, out, errs)
	}
	args := []string{"proxy", "--json", "--upstream-ca", o.Roots}
	for authority, addr := range o.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = harness.Env(p.home, passphrase)
	ready := must.Get(harness.StartProxy(cmd))(t)
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	// TMPDIR: gh keeps responses there, which the other user's would then be.
	u := user{repo: filepath.Join(t.TempDir(), "c"), env: []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"PATH=" + os.Getenv("PATH"), "GH_TOKEN=placeholder", "HTTPS_PROXY=" + ready.ProxyURL, "GH_NO_UPDATE_NOTIFIER=1",
		"SSL_CERT_FILE=" + ready.CAFile, "GIT_SSL_CAINFO=" + ready.CAFile, "GIT_TERMINAL_PROMPT=0"}}
	if out, err := u.run(t, filepath.Dir(u.repo), "git clone -q https://github.com/acme/tool c"); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return u
}

func (u user) run(t *testing.T, dir, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Env, cmd.Dir, cmd.WaitDelay = u.env, dir, time.Minute
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u user) works(t *testing.T, command string) {
	t.Helper()
	if out, err := u.run(t, u.repo, command); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// denied checks that the command ends with a denial of the plane.
func (u user) denied(t *testing.T, command string) {
	t.Helper()
	out, err := u.run(t, u.repo, command)
	if err == nil || !regexp.MustCompile(`HTTP 403|403 Forbidden|cannot be rerun`).MatchString(out) {
		t.Errorf("%v, want a denial\n%s", err, out)
	}
}
