package front

import (
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// crypto/tls puts handshake messages of up to 64 KiB together, during the
// handshake and at any time after it, which the memory budget does not see.
// These are the most that is read from a client without any plain text coming of
// it: all in all, and in whole records once the handshake is over. A ClientHello
// with post-quantum key shares may have 16 KiB.
const (
	mostHandshake = 20 << 10
	mostRecord    = 5 + 16<<10 + 256 // RFC 8446 section 5.2; what TLS 1.2 adds is less
	mostWhole     = 1 << 10
)

var errUnread = errors.New("read TLS: the client's messages are too large")

// ciphertext is a client's connection below TLS.
type ciphertext struct {
	*prefixedConn
	tunnel      *tunnel
	ahead       ahead
	established bool
	came        int   // bytes since the last plain text
	whole       int   // of them, those of records that have ended
	cut         error // of the write that failed

	head [5]byte // of the current record
	n    int     // how much of it has come, its head included
}

func (c *ciphertext) Read(p []byte) (int, error) {
	most := mostHandshake
	if c.established {
		most = mostRecord
	}
	if c.came >= most || c.established && c.whole > mostWhole {
		return 0, errUnread
	}
	n, err := c.ahead.read(p[:min(len(p), most-c.came)], c.prefixedConn)
	c.came += n
	c.follow(p[:n])
	return n, err
}

// Write implements net.Conn. Nothing follows a write that failed: it may have sent a part of a record, which the alert
// that crypto/tls sends at the end would complete. The client would see a bad record MAC instead of a connection that
// was cut. crypto/tls writes from one goroutine at a time.
func (c *ciphertext) Write(p []byte) (n int, err error) {
	if c.cut != nil {
		return 0, c.cut
	}
	n, c.cut = c.prefixedConn.Write(p)
	return n, c.cut
}

// Close implements net.Conn.
func (c *ciphertext) Close() error {
	defer c.ahead.release() // not before nothing more can be read ahead
	return c.prefixedConn.Close()
}

// follow counts the records that end in data.
func (c *ciphertext) follow(data []byte) {
	for len(data) > 0 {
		took := 1
		if c.n < len(c.head) {
			c.head[c.n] = data[0]
		} else {
			took = min(len(data), c.size()-c.n)
		}
		data = data[took:]
		if c.n += took; c.n >= len(c.head) && c.n == c.size() {
			c.whole += c.n
			c.n = 0
		}
	}
}

// size returns the length of the current record, whose head is there.
func (c *ciphertext) size() int { return len(c.head) + int(c.head[3])<<8 + int(c.head[4]) }

// understood starts the counts anew: plain text came, or the handshake is over.
func (c *ciphertext) understood() { c.established, c.came, c.whole = true, 0, 0 }

// plaintext is a client's connection whose ciphertext is bounded.
type plaintext struct {
	*tls.Conn
	below *ciphertext
}

func (c *plaintext) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.below.understood()
	}
	return n, err
}

// readAhead holds the buffers by which clients that send large bodies are read: TLS
// reads a record at a time, which is a system call for each 16 KiB. There are few,
// taken out of the budget for good: a client for which none is left is read as TLS
// asks for it.
type readAhead struct {
	slots   chan struct{}
	buffers sync.Pool
}

const (
	aheadSize  = 64 << 10
	aheadSlots = 8
	bulkReads  = 8 // full reads in a row after which a client's body counts as large
)

func newReadAhead(b *budget.Budget) *readAhead {
	n := min(aheadSlots, b.Size()/16/aheadSize)
	b.Reserve(n * aheadSize)
	return &readAhead{slots: make(chan struct{}, n),
		buffers: sync.Pool{New: func() any { return new([aheadSize]byte) }}}
}

// ahead is what was read of one connection, and TLS has not asked for yet.
type ahead struct {
	of   *readAhead  // nil: there are no buffers
	held atomic.Bool // one of the slots
	buf  *[aheadSize]byte
	r, w int // what is unread is buf[r:w]
	full int // reads in a row that filled all that TLS asked for
}

// read reads from into p, by way of the buffer while the body is large.
func (a *ahead) read(p []byte, from io.Reader) (int, error) {
	if a.r < a.w {
		n := copy(p, a.buf[a.r:a.w])
		if a.r += n; a.r == a.w {
			a.of.buffers.Put(a.buf)
			a.buf, a.r, a.w = nil, 0, 0
			a.release()
		}
		return n, nil
	}
	if a.full < bulkReads || !a.take() {
		n, err := from.Read(p)
		if a.full++; n < len(p) || n < mostRecord/2 {
			a.full = 0
		}
		return n, err
	}
	a.buf = a.of.buffers.Get().(*[aheadSize]byte)
	n, err := from.Read(a.buf[:])
	if n < mostRecord {
		a.full = 0 // it is not so fast any more
	}
	if n == 0 {
		a.of.buffers.Put(a.buf)
		a.buf = nil
		a.release()
		return 0, err
	}
	a.w = n
	return a.read(p, from) // without the error, which comes again
}

func (a *ahead) take() bool {
	if a.of == nil {
		return false
	}
	select {
	case a.of.slots <- struct{}{}:
		a.held.Store(true)
		return true
	default:
		return false
	}
}

// release is called by the reader, and after the connection is closed.
func (a *ahead) release() {
	if a.held.Swap(false) {
		<-a.of.slots
	}
}
