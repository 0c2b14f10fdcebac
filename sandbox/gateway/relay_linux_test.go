package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAnEndIsPassedOnBothWays(t *testing.T) {
	// The plane answers only when the client has said all it wants.
	late := func(conn net.Conn, r io.Reader) {
		sent, err := io.ReadAll(r)
		if err == nil {
			fmt.Fprintf(conn, "got %d", len(sent))
		}
	}
	sealed(t, func(t *testing.T, b *box) {
		b.explicit = func(conn net.Conn) { late(conn, conn) }
		b.redirect = func(conn net.Conn, r *bufio.Reader) { late(conn, r) }
		b.start()
		for _, to := range []string{"127.0.0.1:3128", "192.0.2.1:80"} {
			conn := b.dial(to)
			if _, err := io.WriteString(conn, "all I want"); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(conn); string(got) != "got 10" || err != nil {
				t.Errorf("%s: %q, %v, want the answer and the end", to, got, err)
			}
		}
	})
}

func TestManyBytesBothWaysAtOnce(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, to := range []string{"127.0.0.1:3128", "192.0.2.1:80"} {
			const size = 32 << 20
			data := make([]byte, size)
			for i := 0; i < size; i += 8 {
				v := rand.Uint64()
				for j := range 8 {
					data[i+j] = byte(v >> (8 * j))
				}
			}
			conn := b.dial(to)
			var sending sync.WaitGroup
			sending.Go(func() {
				if _, err := conn.Write(data); err != nil {
					t.Error(err)
				}
				_ = conn.(*net.TCPConn).CloseWrite()
			})
			hash := sha256.New()
			n, err := io.Copy(hash, conn)
			sending.Wait()
			if want := sha256.Sum256(data); err != nil || n != size || !bytes.Equal(hash.Sum(nil), want[:]) {
				t.Errorf("%s: %d bytes came back, %v, want the same %d", to, n, err, size)
			}
		}
	})
}

func TestAServerMaySpeakFirst(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.answer = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n220 ready\r\n"
		b.start()
		conn := b.dial("192.0.2.1:25")
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "220 ready\r\n" {
			t.Errorf("%q, %v", line, err)
		}
	})
}

func TestARefusedConnectClosesTheClient(t *testing.T) {
	for i, answer := range []string{
		"HTTP/1.1 403 Forbidden\r\n\r\nno", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "garbage\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 4000) + "\r\n",
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			sealed(t, func(t *testing.T, b *box) {
				b.answer = answer
				b.start()
				got, err := io.ReadAll(b.dial("192.0.2.1:80"))
				if len(got) != 0 || isTimeout(err) {
					t.Errorf("the client got %q, %v, want the end and nothing else", got, err)
				}
			})
		})
	}
}

// A plane that refuses an upload answers and stops reading; its last words
// must not be lost under a reset. The client reads only when it has sent, so
// that most of the words are still on their way when the plane is gone.
func TestAnEarlyAnswerIsHeardByAClientThatStillSends(t *testing.T) {
	const words = 1 << 20
	sealed(t, func(t *testing.T, b *box) {
		b.redirect = func(conn net.Conn, r *bufio.Reader) {
			_, _ = r.ReadByte()
			_, _ = conn.Write(bytes.Repeat([]byte("x"), words))
		}
		b.start()
		conn := b.dial("192.0.2.1:80")
		for range 256 {
			if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
				t.Errorf("the client cannot send on: %v", err)
				break
			}
		}
		if n, err := io.ReadFull(conn, make([]byte, words)); err != nil {
			t.Errorf("%d of %d bytes were heard: %v", n, words, err)
		}
	})
}

// An agent opens ten thousand connections and keeps them: as many as there is
// room for are served, each of the others is closed at once, and when they
// are gone everything is as before.
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
		var err error
		for range 1000 { // a slot is free as soon as the gateway has seen the end
			if err = exchange(b.dial("127.0.0.1:3128"), "hello"); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("after the flood: %v, want service", err)
		}
		t.Logf("resident after them: %s", status(t, b, "VmRSS"))
	})
}

// status is a line of the gateway's /proc/PID/status.
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
		var err error
		for range 1000 { // the slot is free as soon as the gateway has seen the end
			if err = exchange(b.dial("192.0.2.1:443"), "hello"); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("after the flood: %v, want service", err)
		}
	})
}

func TestAnIdleConnectionEnds(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start("IDLE=1s")
		conn := b.dial("127.0.0.1:3128")
		if err := exchange(conn, "hello"); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %d, %v, want its end", n, err)
		}
	})
}
