//go:build linux

package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
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

// patience bounds every wait. No test judges how long something took.
var patience = harness.Patience

// inside is the variable that is set where this test binary runs in a namespace
// of its own. Its value is the path of the gateway's binary.
const inside = "AILERON_GATEWAY_TEST_BINARY"

// box is this process as a sandbox: it shares its namespace with a real gateway,
// and serves the proxy's sockets in the proxy's place.
type box struct {
	t        *testing.T
	dir      string
	explicit func(net.Conn)                // serves proxy.sock
	redirect func(net.Conn, *bufio.Reader) // serves redirect.sock, after the head
	answer   string                        // to a CONNECT
	targets  chan string                   // of each CONNECT, when it has room

	gateway *exec.Cmd
	stderr  *strings.Builder
}

// sealed runs claim in a network namespace of its own.
func sealed(t *testing.T, claim func(*testing.T, *box)) {
	t.Helper()
	if os.Getenv(inside) != "" {
		claim(t, &box{t: t, answer: "HTTP/1.1 200 OK\r\n\r\n", targets: make(chan string, 64)})
		return
	}
	harness.TestApart(t, inside+"="+binary(t), syscall.CLONE_NEWNET)
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gateway-test-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // an ordinary user runs it too
		return "", err
	}
	path := filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-o", path, "./testdata/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatalf("build the gateway: %v", err)
	}
	return path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv(inside) == "" {
		if path, err := built(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// start serves the proxy's sockets, starts the gateway, and waits for ready.
func (b *box) start(env ...string) {
	b.t.Helper()
	if line := b.launch(env...); line != "ready\n" {
		b.t.Fatalf("the gateway printed %q and %q, want ready", line, b.stderr)
	}
	b.t.Cleanup(func() {
		_ = b.gateway.Process.Signal(syscall.SIGTERM)
		if err := b.gateway.Wait(); err != nil && !strings.Contains(err.Error(), "already") {
			b.t.Errorf("the gateway ended with %v: %s", err, b.stderr)
		}
	})
}

// launch starts the gateway and returns the first line that it prints.
func (b *box) launch(env ...string) string {
	b.t.Helper()
	dir := must.ShortDir(b.t)
	must.Do(b.t, os.Chmod(dir, 0o711))
	b.dir = dir
	if b.explicit == nil {
		b.explicit = echo
	}
	if !slices.Contains(env, "NO_PROXY_SOCKETS=1") {
		b.listen("proxy.sock", b.explicit)
		b.listen("redirect.sock", b.connected)
	}

	b.stderr = &strings.Builder{}
	b.gateway = exec.Command(os.Getenv(inside), filepath.Join(dir, "proxy.sock"), filepath.Join(dir, "redirect.sock"))
	b.gateway.Env = append(os.Environ(), env...)
	b.gateway.Stderr = b.stderr
	out, err := b.gateway.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	must.Do(b.t, b.gateway.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	return line
}

func (b *box) listen(name string, serve func(net.Conn)) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
}

// connected reads the gateway's CONNECT as the proxy does, and answers it.
func (b *box) connected(conn net.Conn) {
	r := bufio.NewReader(conn)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		head.WriteString(line)
	}
	target, _, _ := strings.Cut(strings.TrimPrefix(head.String(), "CONNECT "), " ")
	if want := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"; head.String() != want {
		b.t.Errorf("the head is %q, want %q", head.String(), want)
	}
	select {
	case b.targets <- target:
	default:
	}
	_, _ = io.WriteString(conn, b.answer)
	if b.redirect != nil {
		b.redirect(conn, r)
		return
	}
	_, _ = io.Copy(conn, r)
}

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// resolver returns a resolver that asks server over network, whatever resolv.conf
// has.
func resolver(network, server string) *net.Resolver {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: dial}
}

// address looks name up as a client in the sandbox does.
func (b *box) address(name string) netip.Addr {
	b.t.Helper()
	addrs, err := resolver("udp", "127.0.0.53:53").LookupNetIP(b.t.Context(), "ip", name+".")
	if err != nil || len(addrs) != 1 {
		b.t.Fatalf("look up %s: %v, %v, want one address", name, addrs, err)
	}
	return addrs[0].Unmap()
}

func (b *box) dial(to string) net.Conn {
	b.t.Helper()
	conn, err := net.DialTimeout("tcp", to, patience)
	if err != nil {
		b.t.Fatalf("dial %s: %v", to, err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// exchange sends s and expects it back. It has all the time that there is, however long the connection is open.
func exchange(conn net.Conn, s string) error {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, s); err != nil {
		return err
	}
	got := make([]byte, len(s))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != s {
		return errors.New("other bytes came back: " + string(got))
	}
	return nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
