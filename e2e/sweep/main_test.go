// Package sweep drives everything in aileron that writes: the proxy, the control API, every command, sandboxes, the
// audit log and its exports, the page, captures. It does so with canaries: secrets, values of header fields, queries
// and bodies. Then it searches everything that was written for each of them, in every encoding that a reader could
// undo.
//
// What writes is listed by the program itself: an event of package audit, a command or a route of the page that the
// sweep does not reach fails it. Add a new one here.
package sweep

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var aileron string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "sweep", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { aileron = filepath.Join(dir, "aileron") }))
}

// person is a home, what was written there, and what commands printed.
type person struct {
	t       *testing.T
	dir     string // with everything below
	home    string
	project string
	temp    string // TMPDIR of every command
	in      string // what the person gives to commands: it is not searched
	origin  *stub.Server
	canary  *canaries

	mu      sync.Mutex
	printed []*printout
	verbs   map[string]bool // that were run
}

// printout is what one command printed.
type printout struct {
	args     []string
	out, err bytes.Buffer
	tokens   bool // it prints the session's token, as it should
	bodies   bool // it hands responses to its client, as it should
}

func newPerson(t *testing.T) *person {
	t.Helper()
	dir := must.ShortDir(t)
	p := &person{t: t, dir: dir, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p"),
		temp: filepath.Join(dir, "tmp"), in: filepath.Join(dir, "in"), canary: newCanaries(), verbs: map[string]bool{}}
	for _, d := range []string{p.home, p.project, p.temp, p.in} {
		must.Do(t, os.Mkdir(d, 0o700))
	}
	p.origin = startOrigin(t, p.canary)
	p.give("passphrase", p.canary.secret("passphrase"))
	p.give("next", p.canary.secret("next passphrase"))
	p.give("wrong", p.canary.secret("wrong passphrase"))
	p.write(filepath.Join(p.home, "config.toml"), "tunnel = [\"opaque.sweep.test\"]\n")
	return p
}

// give writes a file of p.in and returns its path.
func (p *person) give(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.in, name)
	p.write(path, text+"\n")
	return path
}

func (p *person) write(path, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(path, []byte(text), 0o600))
}

// command returns a command whose output is searched at the end.
func (p *person) command(args ...string) (*exec.Cmd, *printout) {
	said := &printout{args: args}
	p.mu.Lock()
	p.printed = append(p.printed, said)
	p.ran(args)
	p.mu.Unlock()
	cmd := exec.Command(aileron, append([]string{"--log-level", "debug"}, args...)...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+p.home, "TMPDIR="+p.temp, "HOME="+p.dir,
		"XDG_CACHE_HOME="+p.dir+"/cache", "XDG_CONFIG_HOME="+p.dir+"/config", "NO_COLOR=1",
		"PATH="+p.dir+"/bin:"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &said.out, &said.err
	return cmd, said
}

// ran records the verb of a command.
func (p *person) ran(args []string) {
	for i := range args {
		p.verbs[strings.Join(args[:i+1], " ")] = true
	}
}

// run runs a command to its end, whatever that is.
func (p *person) run(args ...string) *printout { return p.feed("", args...) }

// feed runs a command that reads text.
func (p *person) feed(text string, args ...string) *printout {
	p.t.Helper()
	said, _ := p.finish(text, args...)
	return said
}

// must runs a command that must succeed.
func (p *person) must(args ...string) *printout {
	p.t.Helper()
	said, code := p.finish("", args...)
	if code != 0 {
		p.t.Fatalf("aileron %s: exit %d\n%.4000s%.4000s", strings.Join(args, " "), code, said.out.String(),
			said.err.String())
	}
	return said
}

func (p *person) finish(text string, args ...string) (*printout, int) {
	p.t.Helper()
	cmd, said := p.command(args...)
	cmd.Stdin = strings.NewReader(text)
	out, errs, code := harness.Finish(p.t, cmd, harness.Patience)
	said.out.WriteString(out)
	said.err.WriteString(errs)
	return said, code
}

// refused runs a command that must fail.
func (p *person) refused(text string, args ...string) {
	p.t.Helper()
	said, code := p.finish(text, args...)
	if code == 0 {
		p.t.Errorf("aileron %s succeeds: %s%s", strings.Join(args, " "), said.out.String(), said.err.String())
	}
}

// rows returns all rows of the log.
func (p *person) rows() []audit.Row {
	p.t.Helper()
	return harness.AuditRows(p.t, p.home, audit.Filter{})
}

// reach are the flags that lead the origin's names to it, and the passphrase.
func (p *person) reach() []string {
	flags := []string{"--upstream-ca", p.origin.Roots, "--passphrase-file", filepath.Join(p.in, "passphrase")}
	for _, host := range hosts {
		flags = append(flags, "--resolve", fmt.Sprintf("%s.sweep.test:443:%s", host, p.origin.Addr))
	}
	return flags
}
