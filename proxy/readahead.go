package proxy

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/ALRubinger/aileron/proxy/budget"
)

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
