package homes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// session is an aileron proxy that runs, and a way through it.
type session struct {
	*user
	cmd    *exec.Cmd
	origin *stub.Server
	errs   *must.Output
	proxy  *url.URL
	roots  *x509.CertPool
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // nil: as proxy says
}

// serve starts a session of u, in a shell that runs prelude first.
func (u *user) serve(prelude string) *session {
	u.t.Helper()
	s := &session{user: u, origin: stub.Start(u.t, stub.Script{Token: secret}), errs: &must.Output{}}
	s.cmd = u.command("")
	s.cmd.Path = "/bin/sh"
	s.cmd.Args = []string{"sh", "-c", prelude + ` exec "$@"`, "sh", program(), "proxy", "--json", "--upstream-ca",
		s.origin.Roots,
		"--resolve", stub.Echo + ":443:" + s.origin.Addr}
	s.cmd.Stderr = s.errs
	ready, err := harness.StartProxy(s.cmd)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	if s.roots, err = ready.Roots(); err != nil {
		u.t.Fatal(err)
	}
	if s.proxy, err = ready.Proxy(); err != nil {
		u.t.Fatal(err)
	}
	return s
}

// reason asks for the credentialed operation and returns "" when it was
// allowed, and else the reason of the denial.
func (s *session) reason() string {
	s.t.Helper()
	transport := &http.Transport{Proxy: http.ProxyURL(s.proxy), DisableKeepAlives: true, DialContext: s.dial,
		TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: patience, Transport: transport}
	res, err := client.Get("https://" + stub.Echo + "/echo-chunks")
	if err != nil {
		return "no response: " + err.Error()
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return "half a response"
	}
	var denied struct {
		Error struct{ Details struct{ Reason string } }
	}
	if res.StatusCode != http.StatusOK && json.Unmarshal(raw, &denied) != nil {
		return "no JSON: " + string(raw)
	}
	return denied.Error.Details.Reason
}

// until waits for a reason, and wants the session never to return another one
// than those that are allowed on the way.
func (s *session) until(want string, onTheWay ...string) {
	s.t.Helper()
	harness.WaitFor(s.t, "the reason "+want, func() bool {
		got := s.reason()
		if got == want {
			return true
		}
		for _, allowed := range onTheWay {
			if got == allowed {
				return false
			}
		}
		s.t.Fatalf("the reason is %q, want %q\n%s", got, want, s.errs)
		return false
	})
}

// stop ends the session as a person does, and returns its exit code.
func (s *session) stop() int {
	s.t.Helper()
	must.Do(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		s.t.Fatalf("it does not end\n%s", s.errs)
	}
	return s.cmd.ProcessState.ExitCode()
}

// eio makes every read of a file an input/output error, until the function
// that it returns: nothing is mapped at the beginning of a process's memory.
func eio(t *testing.T, path string) (restore func()) {
	t.Helper()
	if err := syscall.Mount("/proc/self/mem", path, "", syscall.MS_BIND, ""); err != nil {
		harness.Need(t, "a bind mount of /proc/self/mem: "+err.Error())
	}
	restore = sync.OnceFunc(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", path, err)
		}
	})
	t.Cleanup(restore)
	return restore
}

// verifyFailed returns the reasons of the rows that accuse or excuse.
func (u *user) verifyFailed() (reasons []string) {
	u.t.Helper()
	for _, r := range u.rows() {
		if r.Event == audit.EventConnectorVerifyFailed {
			reasons = append(reasons, r.Reason+" "+r.ConnectorFQN)
		}
	}
	return reasons
}

// connectorFile is a file of the only connector of the home.
func (u *user) connectorFile(name string) string {
	u.t.Helper()
	found, _ := filepath.Glob(filepath.Join(u.home, "store/connectors/sha256/*", name))
	if len(found) != 1 {
		u.t.Fatalf("the store has %q", found)
	}
	return found[0]
}

func TestWhatCannotBeReadIsNotCalledChanged(t *testing.T) {
	for name, c := range map[string]struct {
		file   func(u *user) string
		reason string
		rows   string
	}{
		"manifest": {func(u *user) string { return u.connectorFile("manifest.toml") }, "connector_unreadable",
			"connector_unreadable " + echoFQN},
		"spec": {func(u *user) string { return u.connectorFile("aileron.connector.v1.json") }, "connector_unreadable",
			"connector_unreadable " + echoFQN},
		"binding": {func(u *user) string { return filepath.Join(u.home, "vault/bindings", echoWork+".json") },
			"vault_unreadable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			s := u.serve("")
			s.until("")
			restore := eio(t, c.file(u))
			s.until(c.reason, "")
			sent := len(s.origin.Seen())
			s.until(c.reason)
			if now := len(s.origin.Seen()); now != sent {
				t.Errorf("%d requests were sent", now-sent)
			}
			restore()
			s.until("", c.reason)
			if got := strings.Join(u.verifyFailed(), "\n"); got != c.rows {
				t.Errorf("connector.verify_failed: %q, want %q", got, c.rows)
			}
			if said := s.errs.String(); strings.Count(said, "could not be read; requests that need it are refused") != 1 ||
				!strings.Contains(said, "input/output error") || strings.Contains(said, "verification") {
				t.Errorf("stderr: %s", said)
			}
			if code := s.stop(); code != 0 {
				t.Errorf("exit %d: %s", code, s.errs)
			}
		})
	}
}

// What differs is still called changed.
func TestWhatDiffersIsCalledChanged(t *testing.T) {
	u := newUser(t)
	s := u.serve("")
	s.until("")
	manifest := u.connectorFile("manifest.toml")
	for _, spoil := range []func() error{
		func() error { return os.Truncate(manifest, 40) },
		func() error { return os.Remove(manifest) },
	} {
		must.Do(t, spoil())
		s.until("host_not_allowed", "", "connector_not_installed", "not_found", "operation_not_matched")
	}
	for _, r := range u.verifyFailed() {
		if r != "hash_mismatch "+echoFQN {
			t.Errorf("connector.verify_failed: %q", r)
		}
	}
	if len(u.verifyFailed()) == 0 {
		t.Error("no event")
	}
	s.stop()
}

// The commands that read a home name what could not be read, and what to do.
func TestACommandNamesWhatCouldNotBeRead(t *testing.T) {
	u := newUser(t)
	restore := eio(t, u.connectorFile("manifest.toml"))
	for _, args := range [][]string{
		{"connector", "verify", "--json"}, {"connector", "show", echoFQN, "--json"}, {"run", "--json", "--", "true"},
	} {
		r := u.run(args...)
		if r.code != 1 || !strings.Contains(r.err, `"reason":"connector_unreadable"`) ||
			!strings.Contains(r.err, "manifest.toml: input/output error") ||
			!strings.Contains(r.err, "check the disk") || strings.Contains(r.err, "install the connector again") {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	list := u.must("connector", "list")
	if !strings.Contains(list.out, "unreadable: ") || strings.Contains(list.out, "broken") {
		t.Errorf("connector list: %s", list.out)
	}
	restore()
	for file, args := range map[string][]string{
		"vault/identity.age":                   {"run", "--json", "--", "true"},
		"vault/bindings/" + echoWork + ".json": {"binding", "inspect", echoWork, "--json"},
	} {
		restore := eio(t, filepath.Join(u.home, file))
		r := u.run(args...)
		if r.code != 1 || !strings.Contains(r.err, `"reason":"vault_unreadable"`) ||
			!strings.Contains(r.err, "check the disk") {
			t.Errorf("%s: exit %d: %s", file, r.code, r.err)
		}
		restore()
	}
	if got := strings.Join(u.verifyFailed(), "\n"); got != "connector_unreadable "+echoFQN {
		t.Errorf("connector.verify_failed: %q", got)
	}
}

// Whatever a command needs descriptors for first, it accuses no connector when
// there are none.
func TestACommandWithoutDescriptorsAccusesNoConnector(t *testing.T) {
	u := newUser(t)
	unreadable := 0
	for limit := 8; limit <= 24; limit++ { // with fewer, no Go program starts
		cmd := u.command("", "connector", "verify")
		cmd.Path = "/bin/sh"
		cmd.Args = []string{"sh", "-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n " + strconv.Itoa(limit) +
			`; exec "$@"`, "sh", program(), "connector", "verify"}
		out, errs, code := harness.Finish(t, cmd, patience)
		if strings.Contains(out+errs, "changed: ") || strings.Contains(out, "broken") || code == 0 != (errs == "") {
			t.Errorf("with %d descriptors: exit %d, %s%s", limit, code, out, errs)
		}
		if code != 0 && !strings.Contains(errs, "ulimit -n") {
			t.Errorf("with %d descriptors it does not say what to do: %s", limit, errs)
		}
		if strings.Contains(out, "unreadable: ") {
			unreadable++
		}
	}
	if unreadable == 0 {
		t.Error("no limit was low enough")
	}
}

// A session that runs out of descriptors accuses no connector.
func TestASessionWithoutDescriptorsAccusesNoConnector(t *testing.T) {
	u := newUser(t)
	s := u.serve("ulimit -n 64;")
	s.until("")
	var held []net.Conn
	for range 90 {
		conn, err := net.DialTimeout("tcp", s.proxy.Host, patience)
		if err != nil {
			break
		}
		held = append(held, conn)
	}
	// The session reloads what it may do, twice at least, while they are held.
	must.Do(t, os.WriteFile(filepath.Join(u.home, "vault", "touched"), nil, 0o600))
	for range 3 {
		u.must("connector", "verify")
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	harness.WaitFor(t, "requests are allowed again", func() bool { return s.reason() == "" })
	for _, r := range u.verifyFailed() {
		if strings.HasPrefix(r, "hash_mismatch") {
			t.Errorf("connector.verify_failed: %s\n%s", r, s.errs)
		}
	}
	s.stop()
}
