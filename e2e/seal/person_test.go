package seal

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

// Canaries that open nothing: they exist to be searched for.
const (
	secret     = "ghp-seal/in+SECRET0123456789abcdefXYZ"
	passphrase = "correct horse battery staple of the seal"
	connector  = "github://aileron-tests/aileron-connector-ports"
)

// image is the base, as the built program names it.
var image = sandbox.BaseImage().Ref

// person is someone with a home, a project and an engine.
type person struct {
	t             *testing.T
	home, project string
	engine        string
	as            []string // the words before a command; none: this process's user
	origin        *stub.Server
	roots         string
}

// vault is a home in which the connector is installed and bound, made once:
// opening a vault is slow on purpose.
var vault = sync.OnceValues(func() (string, error) {
	home := filepath.Join(os.Getenv(inside), "home")
	return home, harness.Bind(program("aileron"), home, passphrase,
		harness.Connector{Dir: "testdata/connectors/echo", FQN: connector, Secret: secret})
})

// newPerson is a person of that engine whose project belongs to owner.
func newPerson(t *testing.T, engine string, owner int, dir string, as ...string) *person {
	t.Helper()
	template, err := vault()
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, engine: engine, home: filepath.Join(dir, "vault"), project: filepath.Join(dir, "p"),
		roots: filepath.Join(dir, "roots.pem"), as: as}
	p.origin = stub.Start(t, stub.Script{Token: secret})
	user := 0 // that runs aileron
	if len(as) > 0 {
		user = owner
	}
	for _, c := range [][]string{
		{"cp", "-a", template, p.home}, {"cp", p.origin.Roots, p.roots}, {"mkdir", "-m", "755", p.project},
		{"cp", program("probe"), p.project},
		{"chown", "-R", strconv.Itoa(user) + ":" + strconv.Itoa(user), p.home, p.roots},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	return p
}

func (p *person) command(args ...string) *exec.Cmd {
	args = append(append([]string{}, p.as...), append([]string{program("aileron")}, args...)...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = harness.Env(p.home, passphrase)
	return cmd
}

type result struct {
	out, err string
	code     int
}

func (p *person) run(args ...string) result {
	p.t.Helper()
	return finish(p.t, p.command(args...))
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.Do(t, cmd.Start())
	timer := time.AfterFunc(3*harness.Patience, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer timer.Stop()
	_ = cmd.Wait()
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (p *person) must(args ...string) result {
	p.t.Helper()
	r := p.run(args...)
	if r.code != 0 {
		p.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// ports are those on which the stub's name is allowed.
var ports = []string{"443", "22", "8443"}

// box runs a command in a sealed box.
func (p *person) box(command ...string) result {
	p.t.Helper()
	args := []string{"sandbox", "run", "--sandbox=" + p.engine, "--dir", p.project, "--upstream-ca", p.roots}
	for _, port := range ports {
		args = append(args, "--resolve", stub.Echo+":"+port+":"+p.origin.Addr)
	}
	return p.run(append(append(args, "--"), command...)...)
}

// row is what the tests ask of an audit row.
type row struct {
	Event, Source, Decision, Reason, Host string
	Session                               string `json:"session_id"`
	Port, Status                          int
}

func (p *person) rows() []row {
	p.t.Helper()
	return harness.Rows[row](p.t, p.must("audit", "list", "--json", "--limit", "0").out)
}
