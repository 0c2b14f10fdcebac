package front

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/iotest"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// pieces counts the reads of a source.
type pieces struct {
	io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { p.n++; return p.Reader.Read(b) }

// A large body is read in fewer system calls, the same bytes in the same order,
// and its end is not lost.
func TestALargeBodyIsReadAhead(t *testing.T) {
	body := make([]byte, 4<<20+123)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	of := newReadAhead(budget.New(0))
	a := ahead{of: of}
	from := &pieces{Reader: bytes.NewReader(body)}
	var got []byte
	for buf := make([]byte, mostRecord); ; {
		n, err := a.read(buf, from)
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
	}
	if !bytes.Equal(got, body) {
		t.Errorf("%d bytes were read, and are not the %d that were sent", len(got), len(body))
	}
	if most := len(body)/aheadSize + bulkReads + 8; from.n > most {
		t.Errorf("%d bytes took %d reads, want %d at most", len(body), from.n, most)
	}
	if n := len(of.slots); n != 0 {
		t.Errorf("%d buffers are held after the end", n)
	}
}

// A client that sends little, or slowly, has no buffer, and one whose connection is
// closed returns its own.
func TestFewConnectionsAreReadAhead(t *testing.T) {
	of := newReadAhead(budget.New(0))
	slow := ahead{of: of}
	from := iotest.HalfReader(bytes.NewReader(make([]byte, 1<<20)))
	for buf := make([]byte, mostRecord); ; {
		if _, err := slow.read(buf, from); err != nil {
			break
		}
		if slow.buf != nil {
			t.Fatal("a client that does not fill what is asked for has a buffer")
		}
	}
	var all [aheadSlots + 1]ahead
	for i := range all {
		all[i].of = of
		source := bytes.NewReader(make([]byte, 1<<20))
		for range bulkReads + 1 {
			must.Get(all[i].read(make([]byte, mostRecord), source))(t)
		}
	}
	if all[0].buf == nil || all[aheadSlots].buf != nil {
		t.Errorf("the first connection has a buffer: %t, one too many: %t", all[0].buf != nil, all[aheadSlots].buf != nil)
	}
	all[0].release()
	all[0].release()
	if n := len(of.slots); n != aheadSlots-1 {
		t.Errorf("%d buffers are held, want %d", n, aheadSlots-1)
	}
}

// closing is a connection that is read once more while it is closed, as by a reader in
// another goroutine.
type closing struct {
	net.Conn
	io.Reader
	last func()
}

func (c *closing) Read(p []byte) (int, error) { return c.Reader.Read(p) }
func (c *closing) Close() error               { c.last(); return nil }

// A buffer that is taken until the connection is closed is returned all the same.
func TestABufferTakenWhileTheConnectionIsClosedIsReturned(t *testing.T) {
	of := newReadAhead(budget.New(0))
	below := &closing{Reader: bytes.NewReader(make([]byte, 1<<20))}
	c := &ciphertext{prefixedConn: &prefixedConn{Conn: below}, ahead: ahead{of: of, full: bulkReads}, established: true}
	below.last = func() {
		must.Get(c.Read(make([]byte, mostRecord)))(t)
		if len(of.slots) != 1 {
			t.Error("the connection is not read ahead")
		}
	}
	must.Do(t, c.Close())
	if n := len(of.slots); n != 0 {
		t.Errorf("%d buffers are held after the end", n)
	}
}
