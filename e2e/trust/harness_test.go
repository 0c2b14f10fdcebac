// Package trust lets the programs of a host trust a session, and proves that nothing of it is left. The stores are the
// machine's own (update-ca-certificates, Java's cacerts, databases of NSS), changed by the real tools and read by real
// clients; but they are copies, in a mount namespace of the suite's own.
package trust

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// inside is set in the process that has the namespace, to the directory of the built program.
const inside = "AILERON_TRUST_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, "trust: make the mounts private:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// again builds the program and runs the suite in a mount namespace. The machine's own stores must be the same
// afterwards.
func again() int {
	if os.Geteuid() != 0 {
		return harness.NotRun("trust", "only root may change the stores of a system, and make a mount namespace")
	}
	dir, err := os.MkdirTemp("", "trust-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = harness.Build(dir, map[string]string{"aileron": "../../cmd/aileron"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trust:", err)
		return 1
	}
	before := systemStores()
	code := harness.RunApart("trust", inside+"="+dir, syscall.CLONE_NEWNS)
	if after := systemStores(); after != before {
		fmt.Fprintf(os.Stderr, "trust: the machine's own stores have changed: before\n%s\nafter\n%s\n", before, after)
		return 1
	}
	return code
}

const (
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ"
	passphrase = "correct horse battery"
	connector  = "../../examples/connectors/github"
	fqn        = "github://alrubinger/aileron-connector-github"

	patience = 8 * time.Minute // bounds what must happen; nothing is judged by how long it took
)

// systemStores describes the stores of the system, so that two descriptions can be compared: the names and targets of
// links, the bytes of bundles, and of Java's cacerts the certificates.
func systemStores() string {
	var all strings.Builder
	for _, dir := range []string{"/usr/local/share/ca-certificates", "/etc/ssl/certs"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if to, err := os.Readlink(path); err == nil {
				fmt.Fprintf(&all, "%s -> %s\n", path, to)
			} else if data, err := os.ReadFile(path); err == nil {
				fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(data))
			}
		}
	}
	for _, path := range cacerts() {
		data, _ := os.ReadFile(path)
		roots, err := ca.JavaRoots(data)
		if err != nil {
			fmt.Fprintf(&all, "%s: %v\n", path, err)
			continue
		}
		certs := strings.SplitAfter(string(roots), "-----END CERTIFICATE-----\n")
		slices.Sort(certs)
		fmt.Fprintf(&all, "%s %d %x\n", path, len(certs), sha256.Sum256([]byte(strings.Join(certs, ""))))
	}
	return all.String()
}

// cacerts returns the stores of the installed Javas, without links.
func cacerts() (real []string) {
	paths, _ := filepath.Glob("/usr/lib/jvm/*/lib/security/cacerts")
	for _, path := range paths {
		if to, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(real, to) {
			real = append(real, to)
		}
	}
	return real
}

// bound is a home in which the connector is bound: opening a vault is slow on purpose.
var bound = sync.OnceValues(func() (string, error) {
	home := filepath.Join(os.Getenv(inside), "home")
	return home, harness.Bind(program(), home, passphrase,
		harness.Connector{Dir: connector, FQN: fqn, Secret: secret})
})

func program() string { return filepath.Join(os.Getenv(inside), "aileron") }

// host is a machine with one user, whose stores are this test's own.
type host struct {
	t      *testing.T
	user   string // the user's home, with a database of NSS
	home   string // aileron's
	path   string // PATH
	before string // systemStores
	origin *stub.Server
}

// newHost returns a host whose system's stores are copies.
func newHost(t *testing.T) *host {
	t.Helper()
	h := newUser(t)
	copyStores(t)
	h.tool("update-ca-certificates") // the machine's may not be as this leaves them
	h.before = systemStores()
	return h
}

// newUser returns a host for a test that changes the user's own stores only.
func newUser(t *testing.T) *host {
	t.Helper()
	harness.Turn(t)
	for _, tool := range []string{"certutil", "update-ca-certificates", "keytool"} {
		if !harness.Has(t, tool) {
			t.Skipf("%s is not installed: scripts/prepare --tests installs it where it may", tool)
		}
	}
	template := must.Get(bound())(t)
	h := &host{t: t, user: userHome(t), path: os.Getenv("PATH"), origin: stub.Start(t, stub.Script{Token: secret})}
	h.home = filepath.Join(h.user, ".aileron")
	h.before = systemStores()
	harness.Copy(t, template, h.home)
	h.database(".pki/nssdb")
	return h
}

// userHome returns a new directory. What a browser leaves running may write to it for a moment after its end.
func userHome(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "trust-user-"))(t)
	t.Cleanup(func() {
		if !harness.Poll(patience, 10*time.Millisecond, func() bool { return os.RemoveAll(dir) == nil }) {
			t.Errorf("%s cannot be removed", dir)
		}
	})
	return dir
}

// copyStores mounts copies over what the system's tools change.
func copyStores(t *testing.T) {
	t.Helper()
	work := t.TempDir()
	mount := func(from, to, kind string, flags uintptr) {
		t.Helper()
		if err := syscall.Mount(from, to, kind, flags, ""); err != nil {
			t.Fatalf("mount %s: %v", to, err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(to, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	mount("trust", work, "tmpfs", 0)
	dirs := []string{"/etc/ssl/certs", "/usr/local/share/ca-certificates", "/var/lib/ca-certificates-java",
		"/var/lib/dpkg", "/var/log"}
	for _, path := range cacerts() {
		dirs = append(dirs, filepath.Dir(path))
	}
	for i, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		copied := filepath.Join(work, fmt.Sprint(i))
		if dir == "/var/log" { // only written
			must.Do(t, os.Mkdir(copied, 0o755))
		} else {
			harness.Copy(t, dir, copied)
		}
		mount(copied, dir, "", syscall.MS_BIND)
	}
}

// database makes a database of NSS below the user's home.
func (h *host) database(place string) string {
	h.t.Helper()
	dir := filepath.Join(h.user, place)
	must.Do(h.t, os.MkdirAll(dir, 0o700))
	h.tool("certutil", "-N", "--empty-password", "-d", "sql:"+dir)
	return dir
}

func (h *host) tool(name string, args ...string) string {
	h.t.Helper()
	out, err := exec.CommandContext(h.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (h *host) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), name, args...)
	cmd.Env = append(harness.Env(h.home, passphrase), "HOME="+h.user, "PATH="+h.path, "JAVA_HOME=", "JAVA_TOOL_OPTIONS=",
		"SSL_CERT_FILE=", "CURL_CA_BUNDLE=")
	return cmd
}

type result struct {
	out, err string
	code     int
}

func (h *host) run(args ...string) result {
	h.t.Helper()
	out, errs, code := harness.Finish(h.t, h.command(program(), args...), patience)
	return result{out, errs, code}
}

func (h *host) must(args ...string) result {
	h.t.Helper()
	r := h.run(args...)
	if r.code != 0 {
		h.t.Fatalf("aileron %q ends with %d: %s%s", args, r.code, r.out, r.err)
	}
	return r
}

// session is a running aileron proxy.
type session struct {
	harness.Ready
	h    *host
	cmd  *exec.Cmd
	errs *bytes.Buffer
}

func (h *host) serve() *session {
	h.t.Helper()
	s := &session{h: h, errs: &bytes.Buffer{}}
	s.cmd = h.command(program(), "proxy", "--json", "--upstream-ca", h.origin.Roots,
		"--resolve", stub.GitHub+":443:"+h.origin.Addr)
	s.cmd.Stderr = s.errs
	var err error
	if s.Ready, err = harness.StartProxy(s.cmd); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	return s
}

// end ends the session with a signal, and waits for its end.
func (s *session) end(sig syscall.Signal) {
	s.h.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.h.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil && sig != syscall.SIGKILL {
		s.h.t.Fatalf("proxy: %v\n%s", err, s.errs)
	}
}

// forward listens on loopback, and passes what browsers and Java send on to the session's proxy with its token, which
// these cannot be given without a person.
func (s *session) forward() string {
	s.h.t.Helper()
	proxy, err := s.Proxy()
	if err != nil {
		s.h.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.h.t.Fatal(err)
	}
	s.h.t.Cleanup(func() { _ = l.Close() })
	token, _ := proxy.User.Password()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go forward(client, proxy.Host, proxy.User.Username(), token)
		}
	}()
	return l.Addr().String()
}

func forward(client net.Conn, to, name, token string) {
	defer client.Close()
	in := bufio.NewReader(client)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	req.SetBasicAuth(name, token)
	if _, err := fmt.Fprintf(up, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: %s\r\n\r\n", req.Host, req.Host,
		req.Header.Get("Authorization")); err != nil {
		return
	}
	go func() { _, _ = io.Copy(up, in); _ = up.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(client, up)
}

// stores returns the outcomes that ca trust or untrust printed with --json, by kind and state.
func stores(t *testing.T, out string) map[string]string {
	t.Helper()
	var report struct {
		Stores []struct{ Kind, Path, State string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string]string{}
	for _, s := range report.Stores {
		found[s.Kind+" "+s.Path] = s.State
	}
	return found
}

// checkClean reports what is left of a session's root in any store, and on record.
func (h *host) checkClean(when string) {
	h.t.Helper()
	if now := systemStores(); now != h.before {
		h.t.Errorf("%s: the stores of the system are not as they were: %s", when, difference(h.before, now))
	}
	databases, _ := filepath.Glob(filepath.Join(h.user, ".*/*/cert9.db"))
	profiles, _ := filepath.Glob(filepath.Join(h.user, ".mozilla/firefox/*/cert9.db"))
	for _, path := range append(databases, profiles...) {
		if listed := h.tool("certutil", "-L", "-d", "sql:"+filepath.Dir(path)); strings.Contains(listed, "Aileron") {
			h.t.Errorf("%s: %s has %s", when, path, listed)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(h.home, "trusted", "*.json")); len(left) > 0 {
		h.t.Errorf("%s: %q is left", when, left)
	}
}

// difference returns the lines that only one of two descriptions has.
func difference(a, b string) (lines []string) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		for line := range strings.Lines(pair[0]) {
			if !strings.Contains(pair[1], line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// events returns the events of the log that are about the CA, with their sources.
func (h *host) events() (all []string) {
	h.t.Helper()
	for _, r := range harness.Rows[map[string]any](h.t, h.must("audit", "list", "--json", "--limit", "0").out) {
		if event, _ := r["event"].(string); strings.HasPrefix(event, "ca.") {
			all = append(all, fmt.Sprintf("%s %s", event, r["source"]))
		}
	}
	return all
}
