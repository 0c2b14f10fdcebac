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
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAnEndIsPassedOnBothWays(t *testing.T) {
	// The proxy answers when the client has sent all it has.
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
			must.Get(io.WriteString(conn, "all I want"))(t)
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

// A proxy that refuses an upload responds and stops reading. Its response must
// not be lost in a reset. The client reads only when it has sent everything, so
// that most of the response is still on its way when the proxy is gone.
func TestAnEarlyResponseReachesAClientThatStillSends(t *testing.T) {
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
			t.Errorf("%d of %d bytes arrived: %v", n, words, err)
		}
	})
}

func TestAnIdleConnectionEnds(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start("IDLE=1s")
		var conn net.Conn
		harness.WaitFor(t, "a connection is used before it is idle", func() bool { // on a busy machine it may be
			conn = b.dial("127.0.0.1:3128")
			return exchange(conn, "hello") == nil
		})
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %d, %v, want its end", n, err)
		}
	})
}
