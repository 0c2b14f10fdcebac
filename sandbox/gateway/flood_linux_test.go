package gateway_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// An agent opens ten thousand connections and keeps them. As many as there is
// room for are served, and each of the others is closed at once. When they are
// gone, service is as before.
func TestTenThousandConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: opens ten thousand connections")
	}
	const served, many = 4096, 10_000
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		t.Logf("resident at rest: %s", status(t, b, "VmRSS"))
		targets := []string{b.address("example.test").String() + ":443", "127.0.0.1:3128"}
		conns, errs := make(chan net.Conn, many), make(chan error, many)
		refused := atomic.Int64{}
		var running sync.WaitGroup
		turns := make(chan struct{}, 128)
		for i := range many {
			turns <- struct{}{}
			running.Go(func() {
				defer func() { <-turns }()
				conn, err := net.DialTimeout("tcp", targets[i%2], patience)
				if err != nil {
					errs <- err
					return
				}
				_ = conn.SetDeadline(time.Now().Add(patience))
				switch err := exchange(conn, "hello "+strconv.Itoa(i)); {
				case err == nil:
					conns <- conn
				case isTimeout(err):
					errs <- err
				default:
					refused.Add(1)
					_ = conn.Close()
				}
			})
		}
		running.Wait()
		close(conns)
		t.Logf("resident with %d open connections: %s", len(conns), status(t, b, "VmRSS"))
		close(errs)
		for err := range errs {
			t.Fatalf("%d connections were neither served nor refused, the first: %v", len(errs)+1, err)
		}
		if len(conns) != served || refused.Load() != many-served {
			t.Errorf("%d served and %d refused, want %d and %d", len(conns), refused.Load(), served, many-served)
		}
		for conn := range conns {
			if err := exchange(conn, "still here"); err != nil {
				t.Fatalf("a connection that was served: %v", err)
			}
			_ = conn.Close()
		}
		harness.WaitFor(t, "service after the flood", func() bool { // when the gateway has noticed the ends
			return exchange(b.dial("127.0.0.1:3128"), "hello") == nil
		})
		t.Logf("resident after them: %s", status(t, b, "VmRSS"))
	})
}

// status returns a line of the gateway's /proc/PID/status.
func status(t *testing.T, b *box, key string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.gateway.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s", key)
	return ""
}

func TestAFloodEndsItself(t *testing.T) {
	const room, flood = 50, 10_000
	sealed(t, func(t *testing.T, b *box) {
		b.start("CONNECTIONS=" + strconv.Itoa(room))
		var held []net.Conn
		for range room {
			conn := b.dial("192.0.2.1:443")
			if err := exchange(conn, "hello"); err != nil {
				t.Fatal(err)
			}
			held = append(held, conn)
		}
		for range flood {
			conn, err := net.DialTimeout("tcp", "192.0.2.1:443", patience)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		if err := exchange(b.dial("192.0.2.1:443"), "hello"); err == nil || isTimeout(err) {
			t.Errorf("one connection too many: %v, want it closed at once", err)
		}
		for _, conn := range held {
			if err := exchange(conn, "still here"); err != nil {
				t.Fatalf("a connection from before the flood: %v", err)
			}
		}
		if b.address("still-resolves.test"); t.Failed() {
			t.Error("the flood reached the stub")
		}
		_ = held[0].Close()
		harness.WaitFor(t, "service after the flood", func() bool { // when the gateway has noticed the end
			return exchange(b.dial("192.0.2.1:443"), "hello") == nil
		})
	})
}
