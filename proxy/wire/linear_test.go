package wire

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

// fedConn is a connection whose client sends what r has, and reads everything.
type fedConn struct {
	net.Conn
	r       io.Reader
	reads   atomic.Int64
	sent    atomic.Int64
	written strings.Builder
}

func (c *fedConn) Read(p []byte) (int, error) {
	c.reads.Add(1)
	n, err := c.r.Read(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *fedConn) Write(p []byte) (int, error) { return c.written.Write(p) }
func (*fedConn) Close() error                  { return nil }

// serveText serves a client that sends text, byte by byte if it drips.
func serveText(t *testing.T, text string, drips bool, h Handler) *fedConn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	c := &fedConn{Conn: ours, r: strings.NewReader(text)}
	if drips {
		c.r = iotest.OneByteReader(c.r)
	}
	Serve(t.Context(), c, Options{}, h)
	return c
}

// A head that comes byte by byte takes as many reads as it has bytes, and a fixed
// number of allocations.
func TestALargeHeadIsReadOnce(t *testing.T) {
	head := "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("y", 60<<10) + "\r\n\r\n"
	c := serveText(t, head, true, echo{})
	if want := int64(len(head)) + 1; c.reads.Load() > want { // and the end
		t.Errorf("a head of %d bytes took %d reads", len(head), c.reads.Load())
	}
	if !strings.HasPrefix(c.written.String(), "HTTP/1.1 200") {
		t.Errorf("the response is %.60q", c.written.String())
	}
	for drips, most := range map[bool]float64{false: 400, true: 600} {
		if n := testing.AllocsPerRun(5, func() { serveText(t, head, drips, echo{}) }); n > most && !underRace {
			t.Errorf("a large head takes %v allocations, want at most %v", n, most)
		}
	}
}

// Chunks of one byte are parsed in the buffer: they take no read of the connection
// and no allocation of their own.
func TestChunksOfOneByteCostNoReadEach(t *testing.T) {
	const chunks = 10_000
	text := "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", chunks) +
		"0\r\n\r\n"
	got := int64(0)
	h := handlerFunc(func(_ *ResponseWriter, r *http.Request) { got, _ = io.Copy(io.Discard, r.Body) })
	c := serveText(t, text, false, h)
	if got != chunks {
		t.Fatalf("the body has %d bytes, want %d; %s", got, chunks, c.written.String())
	}
	if reads := c.reads.Load(); reads > int64(len(text))/bufferSize+10 {
		t.Errorf("%d chunks took %d reads", chunks, reads)
	}
	if n := testing.AllocsPerRun(5, func() { serveText(t, text, false, h) }); n > chunks/50 && !underRace {
		t.Errorf("%d chunks take %v allocations", chunks, n)
	}
}
