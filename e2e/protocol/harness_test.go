// Package protocol holds the built binary to HTTP with the clients and the
// conformance suites that others wrote: curl, grpc-go, @grpc/grpc-js, ws,
// h2spec, slowhttptest. docs/protocols.md lists what each of them shows.
package protocol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

const (
	secret     = "S1-tok+en/0123456789=abcdefghij%klmnop"
	passphrase = "correct horse battery"
	fqn        = "github://acme/protocol"
)

// The origin's names. None of them resolves: --resolve leads them to loopback.
const (
	hostH1    = "one.protocol.example"    // HTTP/1.1 by ALPN
	hostH2    = "two.protocol.example"    // HTTP/2 and HTTP/1.1 by ALPN
	hostOnly2 = "only.protocol.example"   // HTTP/2 alone
	hostGRPC  = "grpc.protocol.example"   // a gRPC server
	hostWS    = "socket.protocol.example" // a WebSocket server
	hostOpen  = "open.protocol.example"   // allowed as it is, in clear
	hostOdd   = "odd.protocol.example"    // a server that is not Go's
	hostPort  = "port.protocol.example"   // declared at port 8443
)

const manifest = `
[connector]
name = "` + fqn + `"
version = "1.0.0"
[capabilities.network]
hosts = ["one.protocol.example", "two.protocol.example", "only.protocol.example", "odd.protocol.example",
  "grpc.protocol.example", "socket.protocol.example",
  "open.protocol.example:80", "port.protocol.example:8443"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const spec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"` + fqn + `","version":"1.0.0"},
"headers":["x-grpc-test-*"],
"tools":[{"name":"protocol","operations":[
 {"name":"any","method":"*","path":"/v1/{rest...}",
  "hosts":["one.protocol.example","two.protocol.example","only.protocol.example","odd.protocol.example",
   "port.protocol.example:8443"],"credential":"bearer"},
 {"name":"parts","method":"GET","path":"/parts/{name}",
  "hosts":["one.protocol.example","two.protocol.example"],"credential":"bearer","ranges":true},
 {"name":"grpc","method":"POST","path":"/{service}/{method}","hosts":["grpc.protocol.example"],"credential":"bearer"},
 {"name":"socket","method":"GET","path":"/socket",
  "hosts":["socket.protocol.example"],"credential":"bearer","upgrade":"websocket"},
 {"name":"open","hosts":["open.protocol.example:80"]}]}]}`

// Set by TestMain, for all tests.
var (
	binary string // the built aileron
	home   string // with the connector installed and the secret bound
	origin *server
	shared *session
)

func TestMain(m *testing.M) {
	if client := os.Getenv("PROTOCOL_CLIENT"); client != "" {
		os.Exit(runGRPC(client))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "protocol-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := setUp(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer origin.close()
	shared, err = openSession()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// setUp builds the program and installs the connector in a home of its own.
func setUp(dir string) error {
	binary, home = filepath.Join(dir, "aileron"), filepath.Join(dir, "h")
	if err := harness.Build(dir, map[string]string{"aileron": "../../cmd/aileron"}); err != nil {
		return err
	}
	connector := filepath.Join(dir, "connector")
	if err := os.Mkdir(connector, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"connector/manifest.toml": manifest,
		"connector/aileron.connector.v1.json": spec, "secret": secret + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"connector", "install", connector, "--yes"},
		{"binding", "setup", fqn, "--identity", "test", "--secret-file", filepath.Join(dir, "secret")},
	} {
		if out, err := aileron(args...).CombinedOutput(); err != nil {
			return fmt.Errorf("aileron %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	var err error
	origin, err = startServer(dir)
	return err
}

func aileron(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+home, "AILERON_VAULT_PASSPHRASE="+passphrase)
	return cmd
}

// session is an `aileron proxy` of its own process.
type session struct {
	harness.Ready
	cmd *exec.Cmd
}

// openSession starts a session that reaches the origin under all its names.
func openSession(flags ...string) (*session, error) {
	args := append([]string{"proxy", "--json", "--upstream-ca", origin.roots}, flags...)
	for at, to := range origin.resolve {
		args = append(args, "--resolve", at+":"+to)
	}
	s := &session{cmd: aileron(args...)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // a test that times out leaves none
	s.cmd.Stderr = &must.Output{}
	var err error
	s.Ready, err = harness.StartProxy(s.cmd)
	return s, err
}

// configuring is held while a session reads the configuration of the home that
// all have.
var configuring sync.Mutex

// newSession is openSession with a configuration, until the test ends. Tests
// with a session of their own are parallel; those that count what the origin
// sees are not, and are over before the others go on.
func newSession(t *testing.T, config string, flags ...string) *session {
	t.Helper()
	configuring.Lock()
	defer configuring.Unlock()
	file := filepath.Join(home, "config.toml")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
	s, err := openSession(flags...)
	must.Do(t, os.Remove(file))
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, s.close()) })
	return s
}

func (s *session) close() error { return harness.EndProxy(s.cmd) }

// addr is the host:port of the session's door; token opens it.
func (s *session) addr() (addr, token string) {
	u, _ := s.Proxy()
	token, _ = u.User.Password()
	return u.Host, token
}

type row = map[string]any

// rows are the outcome rows of a path, of requests that began after since.
func (s *session) rows(t *testing.T, path string, since time.Time) []row {
	t.Helper()
	out := must.Get(aileron("audit", "list", "--json", "--limit", "0", "--session", s.SessionID, "--since",
		since.Format(time.RFC3339Nano)).Output())(t)
	return slices.DeleteFunc(harness.Rows[row](t, string(out)), func(r row) bool {
		return r["path"] != path || r["event"] == "connector.proxy.started"
	})
}

// row is the one outcome row of a path since then, once it is written.
func (s *session) row(t *testing.T, path string, since time.Time) row {
	t.Helper()
	var rows []row
	harness.WaitFor(t, "the row is written", func() bool { rows = s.rows(t, path, since); return len(rows) > 0 })
	if len(rows) > 1 {
		t.Errorf("%d rows of one exchange: %v", len(rows), rows)
	}
	return rows[0]
}

func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		harness.Need(t, program+": scripts/prepare or the system's packages have it")
	}
	return path
}

// packaged is need for a program that root gets from Debian's packages, as
// scripts/prepare does.
func packaged(t *testing.T, program string) string {
	t.Helper()
	_, err := exec.LookPath(program)
	_, debian := os.Stat("/etc/debian_version")
	if err != nil && debian == nil && os.Geteuid() == 0 {
		install := exec.CommandContext(t.Context(), "sh", "-c",
			"apt-get update -qq && apt-get install -y -qq --no-install-recommends "+program)
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := install.CombinedOutput(); err != nil {
			t.Logf("%s cannot be installed: %v\n%s", program, err, out)
		}
	}
	return need(t, program)
}
