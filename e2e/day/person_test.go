package day

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

const passphrase = "correct horse battery"

// cell is one kind of person.
type cell struct {
	agent, engine string
	user          string // as for userOf
	owner         int    // of the project; 0: the user
}

// person is someone with a project and a Git identity, and without a home of aileron.
type person struct {
	t                  *testing.T
	cell               cell
	agent              agent
	user               user
	owner              int
	dir, home, project string
	env                []string
	image              string
	origin             *services.Origin
	seen               []step // for the recording
}

type result struct {
	out, err string
	code     int
}

// newPerson is a person whose model asks for a shell command.
func newPerson(t *testing.T, c cell, command string) *person {
	t.Helper()
	harness.NeedEngine(t, engineOf(c.engine))
	p := &person{t: t, cell: c, agent: agents[c.agent], dir: must.OpenDir(t)}
	images := []recipes.Image{recipes.Agent(p.agent.name)}
	if p.agent.packages != nil {
		images = append(images, recipes.Golang())
	}
	recipes.Need(t, engineOf(c.engine), images...)
	var refs []string
	for _, image := range images {
		p.image = image.Ref
		refs = append(refs, p.image)
	}
	p.user = userOf(t, c.user, c.engine, p.dir, images[len(images)-1], refs...)
	if p.owner = c.owner; p.owner == 0 {
		p.owner = p.user.id
	}
	p.home, p.project = filepath.Join(p.dir, "h"), filepath.Join(p.dir, "u", "p")
	p.origin = services.Start(t, repository(t), "", stub.Script{Command: command})
	for _, dir := range []string{filepath.Dir(p.project), p.project} { // another user makes what is beside it
		must.Do(t, os.Mkdir(dir, 0o755))
		p.chown(dir, p.owner)
	}
	if c.user != "" { // the parent of its home must be its own
		p.home = filepath.Join(p.dir, "u", "h")
	}
	config := p.write("gitconfig", "[user]\n\tname = Ada Person\n\temail = ada@example.com\n[safe]\n\tdirectory = *\n")
	p.env = []string{"AILERON_HOME=" + p.home, "AILERON_VAULT_PASSPHRASE=" + passphrase, "GIT_CONFIG_GLOBAL=" + config,
		"GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1"}
	return p
}

// repository returns a directory with the files of acme/tool.
func repository(t *testing.T) string {
	t.Helper()
	files := t.TempDir()
	harness.Copy(t, "testdata/tool/.", files)
	for _, name := range []string{"go.mod", "main.go"} { // not of this module
		must.Do(t, os.Rename(filepath.Join(files, name+".txt"), filepath.Join(files, name)))
	}
	return files
}

// chown makes a user the owner of a file.
func (p *person) chown(path string, id int) {
	p.t.Helper()
	if id == os.Geteuid() {
		return
	}
	must.Do(p.t, os.Chown(path, id, id))
}

// write writes a file of the person's outside of the project.
func (p *person) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	must.Do(p.t, os.WriteFile(path, []byte(text), 0o600))
	p.chown(path, p.user.id)
	return path
}

// command is a command that the person runs in the project.
func (p *person) command(words ...string) *exec.Cmd {
	words = slices.Concat(p.user.as, []string{"env"}, p.env, words)
	cmd := exec.CommandContext(p.t.Context(), words[0], words[1:]...)
	cmd.Dir = p.project
	return cmd
}

func (p *person) run(args ...string) result {
	p.t.Helper()
	out, errs, code := harness.Finish(p.t, p.command(append([]string{binary}, args...)...), 2*harness.Patience)
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
	name, engine := p.agent.name, "--sandbox="+p.cell.engine
	flags = append([]string{"--github-token-file", token}, flags...)
	if name == "opencode" { // it takes keys of several providers
		flags = append(flags, "--provider", p.agent.provider)
	}
	r := p.must(append([]string{"setup", name, "--yes", engine, "--key-file", key}, flags...)...)
	wants := []string{"vault created", "aileron launch " + engine + " " + name}
	if p.cell.engine != sandbox.Native {
		wants = append(wants, "the image of "+name+" is ready")
	}
	contains(p.t, "what setup prints", r.out+r.err, wants...)
	typed := strings.NewReplacer(key, "key.txt", token, "token.txt").Replace(strings.Join(flags, " "))
	p.show("aileron setup "+name+" --yes --key-file key.txt "+typed, r.err, strings.ReplaceAll(r.out, engine+" ", ""))
}

// installRegistries installs the connectors of the registries that the day needs.
func (p *person) installRegistries() {
	p.t.Helper()
	r := p.must("connector", "install", "npm", "pypi", "go", "--yes")
	p.show("aileron connector install npm pypi go --yes", "…\n", r.out) // without what it grants
}

// reach is how the services are reached under their names.
func (p *person) reach() []string {
	roots := p.write("roots.pem", readFile(p.t, p.origin.Roots))
	args := []string{"--sandbox=" + p.cell.engine, "--dir", p.project, "--upstream-ca", roots}
	for authority, addr := range p.origin.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	return args
}

// launch launches the agent with arguments. Its image has Debian's Go, or the sandbox sees this host's.
func (p *person) launch(arguments []string, flags ...string) result {
	p.t.Helper()
	args := slices.Concat([]string{"launch"}, p.reach(), flags)
	if p.cell.engine != sandbox.Native { // of which the host has them
		args = append(args, p.agent.packages...)
	}
	for _, variable := range append([]string{"GOSUMDB=" + p.origin.SumDB}, p.agent.env...) {
		args = append(args, "--env", variable)
	}
	if p.agent.packages == nil {
		args = append(args, "--mount", goroot(p.t)+":/usr/local/go:ro")
	}
	return p.run(slices.Concat(args, []string{p.agent.name, "--"}, arguments)...)
}

// goroot is where this host's Go is.
func goroot(t *testing.T) string {
	t.Helper()
	out := must.Get(exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output())(t)
	return strings.TrimSpace(string(out))
}

// forget removes what the engine keeps of the agent when the test ends.
func (p *person) forget() {
	p.t.Cleanup(func() {
		// The context of the test is done by then.
		words := slices.Concat(p.user.as, []string{"env"}, p.env, []string{binary, "sandbox", "prune", "--state", "--dir",
			p.project, "--yes", "--sandbox=" + p.cell.engine})
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			p.t.Errorf("forget the agent's state: %v\n%s", err, out)
		}
	})
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

// own runs a program of this process's user: the project's owner may be without rights to the stand-ins.
func (p *person) own(name string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	cmd.Dir, cmd.Env = p.project, append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// strangers are files of the project that do not belong to its owner.
func (p *person) strangers() string {
	p.t.Helper()
	return p.sh("find . -not -uid " + strconv.Itoa(p.owner) + " | head -n 5")
}
