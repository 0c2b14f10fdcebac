package day

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

const passphrase = "correct horse battery"

// person is someone with a project and a Git identity, and without a home of aileron.
type person struct {
	t             *testing.T
	engine        string
	home, project string
	env           []string
	image         string
	origin        *services.Origin
	seen          []step // for the recording
}

type result struct {
	out, err string
	code     int
}

// newPerson is a person whose model asks for a shell command.
func newPerson(t *testing.T, engine, command string) *person {
	t.Helper()
	harness.NeedEngine(t, engine)
	image := recipes.Agent("claude")
	recipes.Need(t, engine, image)
	dir, err := os.MkdirTemp("", "day-") // below the shortest there is: socket paths are bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &person{t: t, engine: engine, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p"), image: image.Ref}
	files := t.TempDir()
	harness.Copy(t, "testdata/tool/.", files)
	for _, name := range []string{"go.mod", "main.go"} { // not of this module
		if err := os.Rename(filepath.Join(files, name+".txt"), filepath.Join(files, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.origin = services.Start(t, files, "", stub.Script{Command: command})
	config := p.write("gitconfig", "[user]\n\tname = Ada Person\n\temail = ada@example.com\n[safe]\n\tdirectory = *\n")
	p.env = append(harness.Env(p.home, passphrase), "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1")
	if err := os.Mkdir(p.project, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// write writes a file of the person's outside of the project.
func (p *person) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *person) run(args ...string) result {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = p.project, p.env
	out, errs, code := harness.Finish(p.t, cmd, 2*harness.Patience)
	return result{out, errs, code}
}

func (p *person) must(args ...string) result {
	p.t.Helper()
	r := p.run(args...)
	if r.code != 0 {
		p.t.Fatalf("aileron %q ends with %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r
}

// setUp makes the home, as a script does.
func (p *person) setUp(flags ...string) {
	p.t.Helper()
	key, token := p.write("key.txt", services.Key+"\n"), p.write("token.txt", services.Token+"\n")
	r := p.must(append([]string{"setup", "claude", "--yes", "--sandbox=" + p.engine, "--key-file", key,
		"--github-token-file", token}, flags...)...)
	contains(p.t, "what setup prints", r.out+r.err, "vault created", "the image of claude is ready",
		"aileron launch --sandbox="+p.engine+" claude")
	p.show("aileron setup claude --yes --key-file key.txt --github-token-file token.txt "+strings.Join(flags, " "),
		r.err, strings.ReplaceAll(r.out, "--sandbox="+p.engine+" ", ""))
}

// installRegistries installs the connectors of the registries that the day needs.
func (p *person) installRegistries() {
	p.t.Helper()
	r := p.must("connector", "install", "npm", "pypi", "go", "--yes")
	p.show("aileron connector install npm pypi go --yes", r.err, r.out)
}

// reach is how the services are reached under their names.
func (p *person) reach() []string {
	args := []string{"--sandbox=" + p.engine, "--dir", p.project, "--upstream-ca", p.origin.Roots}
	for authority, addr := range p.origin.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	return args
}

// launch launches Claude Code with a prompt, and this host's Go beside it.
func (p *person) launch(prompt string, flags ...string) result {
	p.t.Helper()
	args := append([]string{"launch"}, p.reach()...)
	args = append(args, "--mount", goroot(p.t)+":/usr/local/go:ro", "--env", "GOSUMDB="+p.origin.SumDB,
		"--env", "BASH_DEFAULT_TIMEOUT_MS=600000", // the machine may be at load
		"claude", "--", "-p", prompt, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(*)")
	return p.run(append(args, flags...)...)
}

// goroot is where this host's Go is.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// box runs a script in a sandbox of the agent's image.
func (p *person) box(script string) result {
	p.t.Helper()
	args := append([]string{"sandbox", "run"}, p.reach()...)
	return p.run(append(args, "--image", p.image, "--", "bash", "-c", script)...)
}

// sh runs a script of the person's own, in the project.
func (p *person) sh(script string) string {
	p.t.Helper()
	return p.own("sh", "-euc", script)
}

func (p *person) git(args ...string) string {
	p.t.Helper()
	return p.own("git", args...)
}

func (p *person) own(name string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	cmd.Dir, cmd.Env = p.project, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
