// Package hostile holds the built program to its memory budget: each load is
// what a sandbox can do to a session on purpose, against a fresh process, while
// honest requests go on beside it. docs/performance.md has the table.
package hostile

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

const (
	secret     = "S1-tok+en/0123456789=abcdefghij%klmnop"
	passphrase = "correct horse battery"
	fqn        = "github://acme/hostile"
	mib        = 1 << 20
)

// The origin's names, which only --resolve knows.
const (
	hostH1     = "one.hostile.example"    // HTTP/1.1 by ALPN
	hostH2     = "two.hostile.example"    // HTTP/2 and HTTP/1.1 by ALPN
	hostClosed = "closed.hostile.example" // of no connector
)

const manifest = `
[connector]
name = "` + fqn + `"
version = "1.0.0"
[capabilities.network]
hosts = ["one.hostile.example", "two.hostile.example", "open.hostile.example:80"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const spec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"` + fqn + `","version":"1.0.0"},
"tools":[{"name":"hostile","operations":[
 {"name":"read","method":"GET","path":"/v1/{rest...}",
  "hosts":["one.hostile.example","two.hostile.example"],"credential":"bearer",
  "audit":[{"name":"title","source":"response.body.title"}]},
 {"name":"send","method":"POST","path":"/v1/{rest...}",
  "hosts":["one.hostile.example","two.hostile.example"],"credential":"bearer"},
 {"name":"socket","method":"GET","path":"/socket",
  "hosts":["one.hostile.example"],"credential":"bearer","upgrade":"websocket"},
 {"name":"open","hosts":["open.hostile.example:80"]}]}]}`

// Set by TestMain, for all tests.
var (
	program string
	home    string
	origin  *server
)

func TestMain(m *testing.M) {
	harness.Widen(2) // each keeps a core busy, and is measured
	os.Exit(harness.Run(m, "hostile", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		program, home = filepath.Join(dir, "aileron"), filepath.Join(dir, "h")
		if err := setUp(dir); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(1)
		}
	}, func() { origin.close() }))
}

func setUp(dir string) error {
	connector := filepath.Join(dir, "connector")
	if err := os.Mkdir(connector, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"manifest.toml": manifest, "aileron.connector.v1.json": spec} {
		if err := os.WriteFile(filepath.Join(connector, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := harness.Bind(program, home, passphrase,
		harness.Connector{Dir: connector, FQN: fqn, Secret: secret}); err != nil {
		return err
	}
	// An upload that its origin does not read is under way until it times out,
	// and the end of a session would wait for it.
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("[limits]\ndrain_timeout = \"1s\"\n"),
		0o600); err != nil {
		return err
	}
	var err error
	origin, err = startServer(dir)
	return err
}

// session is an `aileron proxy` in a process of its own.
type session struct {
	harness.Ready
	t   *testing.T
	cmd *exec.Cmd
}

// newSession starts a session, which ends with the test. Its limits are the
// default ones, but for the time that its end may take.
func newSession(t *testing.T) *session { return newSessionBy(t, program) }

// newSessionBy starts a session with a command that runs the program.
func newSessionBy(t *testing.T, command ...string) *session {
	t.Helper()
	args := []string{"proxy", "--json", "--upstream-ca", origin.roots}
	for at, to := range origin.resolve {
		args = append(args, "--resolve", at+":"+to)
	}
	s := &session{t: t, cmd: exec.Command(command[0], append(command[1:], args...)...)}
	s.cmd.Env = harness.Env(home, passphrase)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	s.cmd.Stderr = &must.Output{}
	s.Ready = must.Get(harness.StartProxy(s.cmd))(t)
	t.Cleanup(func() {
		if err := harness.EndProxy(s.cmd); err != nil {
			t.Error(err)
		}
	})
	return s
}

// memory is a field of the session's process in bytes: VmRSS, or VmHWM, which
// is the most that VmRSS ever was.
func (s *session) memory(field string) int64 {
	s.t.Helper()
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))(s.t)
	_, after, ok := strings.Cut(string(raw), field+":")
	words := strings.Fields(after)
	if !ok || len(words) == 0 {
		s.t.Fatalf("the process has no %s", field)
	}
	n := must.Get(strconv.ParseInt(words[0], 10, 64))(s.t)
	return n << 10
}

// peak starts the measure of the most that the process takes, which counts from
// now on where this system lets it, and else from what is sampled.
func (s *session) peak() func() int64 {
	reset := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0o600)
	most := int64(0)
	return func() int64 {
		s.t.Helper()
		if reset == nil {
			return s.memory("VmHWM")
		}
		most = max(most, s.memory("VmRSS"))
		return most
	}
}

func listen() (net.Listener, netip.AddrPort, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	return l, netip.MustParseAddrPort(l.Addr().String()), nil
}
