// Package clock sets the clock of a running session, and stops its process as
// a sleep does: what is honest goes on, and no event is out of order.
package clock

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// setting asks for this suite, which compiles all packages anew with a clock
// that can be set. A program that was built so is taken from the file it names.
const setting = "AILERON_CLOCK"

var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(setting) == "" {
		fmt.Fprintln(os.Stderr, "clock: not run: it compiles Go's own packages anew, which just nightly does")
		return 0
	}
	dir, err := os.MkdirTemp("", "clock-")
	if err == nil {
		defer os.RemoveAll(dir)
		program = os.Getenv(setting)
		if !filepath.IsAbs(program) {
			program, err = buildWith(dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clock:", err)
		return 1
	}
	return m.Run()
}

const (
	host       = "api.echo.example"
	passphrase = "correct horse battery"
	fqn        = "github://aileron-tests/aileron-connector-echo"
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ"
)

// session is a running aileron proxy whose clock can be set.
type session struct {
	t      *testing.T
	home   string
	clock  string // the file that sets it
	cmd    *exec.Cmd
	stderr *must.Output
	ready  harness.Ready
	tick   chan string // the lines of GET /stall
	client *http.Client
	proxy  *url.URL
	roots  *x509.CertPool // the session's
}

// open starts a session with these limits in its config.toml.
func open(t *testing.T, limits string) *session {
	t.Helper()
	s := &session{t: t, home: filepath.Join(t.TempDir(), "h"), clock: filepath.Join(t.TempDir(), "clock"),
		stderr: &must.Output{}, tick: make(chan string)}
	s.set(0)
	must.Do(t, harness.Bind(program, s.home, passphrase,
		harness.Connector{Dir: "../testdata/connectors/echo", FQN: fqn, Secret: secret}))
	must.Do(t, os.WriteFile(filepath.Join(s.home, "config.toml"), []byte(limits), 0o600))
	addr, roots := s.origin()
	s.cmd = s.command("proxy", "--json", "--ca-out", filepath.Join(t.TempDir(), "ca.pem"), "--upstream-ca", roots,
		"--resolve", host+":443:"+addr)
	s.cmd.Stderr = s.stderr
	var err error
	if s.ready, err = harness.StartProxy(s.cmd); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceFunc(func() {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	})
	t.Cleanup(ended)
	s.trust(s.ready.CAFile)
	if s.proxy, err = s.ready.Proxy(); err != nil {
		t.Fatal(err)
	}
	s.client = s.newClient()
	return s
}

func (s *session) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(harness.Env(s.home, passphrase), "TEST_CLOCK="+s.clock)
	return cmd
}

// aileron runs another command at the session's time.
func (s *session) aileron(args ...string) (out string, code int) {
	s.t.Helper()
	out, errs, code := harness.Finish(s.t, s.command(args...), harness.Patience)
	if code != 0 {
		s.t.Logf("aileron %s: exit %d: %s", strings.Join(args, " "), code, errs)
	}
	return out, code
}

// set sets the clock by so much from the machine's.
func (s *session) set(by time.Duration) {
	s.t.Helper()
	f, err := os.OpenFile(s.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)), 0); err != nil {
		s.t.Fatal(err)
	}
}

// trust makes clients trust the roots in these files.
func (s *session) trust(files ...string) {
	s.t.Helper()
	s.roots = x509.NewCertPool()
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil || !s.roots.AppendCertsFromPEM(pem) {
			s.t.Fatalf("no roots in %s: %v", file, err)
		}
	}
}

// newClient returns a client whose clock is the session's.
func (s *session) newClient() *http.Client {
	s.t.Helper()
	now := func() time.Time {
		raw, err := os.ReadFile(s.clock)
		if err != nil {
			return time.Time{}
		}
		return time.Now().Add(time.Duration(binary.NativeEndian.Uint64(raw)) * time.Second)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(s.proxy),
		TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12, Time: now}}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 5 * time.Minute}
}

// origin serves the API: GET /stall is a stream of what the test sends.
func (s *session) origin() (addr, roots string) {
	s.t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	mux.HandleFunc("/stall", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-s.tick:
				fmt.Fprintf(w, "data: %s\n\n", line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	cert, file := certificate(s.t)
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	return server.Listener.Addr().String(), file
}

// ask makes a request and returns what came of it.
func (s *session) ask(c *http.Client) (status int, err error) {
	res, err := c.Get("https://" + host + "/echo")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body) // else the client ends its connection
	return res.StatusCode, err
}

// ok fails the test unless requests are served.
func (s *session) ok(when string, c *http.Client) {
	s.t.Helper()
	if status, err := s.ask(c); status != http.StatusOK {
		s.t.Errorf("%s: %d, %v\n%s", when, status, err, s.stderr)
	}
}

// stream opens a stream and returns a function by which one more event goes
// through it.
func (s *session) stream() (event func(string)) {
	s.t.Helper()
	res, err := s.newClient().Get("https://" + host + "/stall")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream: %s\n%s", res.Status, s.stderr)
	}
	lines := bufio.NewReader(res.Body)
	return func(when string) {
		s.t.Helper()
		select {
		case s.tick <- when:
		case <-time.After(harness.Patience):
			s.t.Fatalf("%s: the stream's origin is gone\n%s", when, s.stderr)
		}
		line, err := lines.ReadString('\n')
		if _, _ = lines.ReadString('\n'); line != "data: "+when+"\n" {
			s.t.Fatalf("%s: the stream has %q, %v\n%s", when, line, err, s.stderr)
		}
	}
}
