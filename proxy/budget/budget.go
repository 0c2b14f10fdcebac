// Package budget bounds the bytes that a session holds on behalf of its
// clients: request heads while they arrive, bodies that have not been read yet,
// and the cost of an exchange while it is under way.
//
// There is one [Budget] for a session, a [Conn] for each client connection, and
// a [Hold] for each part of it that can be ended alone: an HTTP/1.1 connection,
// an HTTP/2 stream, a WebSocket. A hold takes bytes before it uses them:
//
//	hold := b.Conn().Hold(cancel)
//	defer hold.Release()
//	if !hold.Take(size) {
//		return budget.ErrShed
//	}
//
// Where the budget is short, the holds that have stood still for longest are
// shed, first those of connections that hold more than an equal part: their
// bytes count as free, and their shed function is called to end them. So slow
// clients make room for others, and a client that takes everything harms only
// itself.
package budget

import (
	"container/list"
	"errors"
	"sync"
)

// Default is the size of a budget when nothing else is configured. With it, a
// session that is attacked stays within 64 MiB of what it takes when idle.
const Default = 20 << 20

// ErrShed is why a hold ended that had to make room.
var ErrShed = errors.New("serve: the session's memory budget is exhausted")

// Budget is the bytes that one session may hold. A nil Budget has no bounds.
type Budget struct {
	size int64

	mu     sync.Mutex
	used   int64
	active int64         // connections that hold anything
	doomed int64         // bytes that were shed, whose holds have not ended yet
	ended  chan struct{} // closed when doomed becomes less; nil: nothing waits for it
	still  list.List     // of *Hold that stand still, the longest first
}

// New returns a budget of size bytes; 0 means Default.
func New(size int64) *Budget {
	if size == 0 {
		size = Default
	}
	return &Budget{size: size}
}

// Size returns the bytes that may be taken.
func (b *Budget) Size() int64 { return b.size }

// Reserve takes n bytes out of the budget for good, for what it does not count
// one by one. It is called before the budget is used.
func (b *Budget) Reserve(n int64) { b.size -= n }

// Used returns the bytes that are taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Conn returns the account of a new connection, which may take five
// eighths of the budget.
func (b *Budget) Conn() *Conn {
	if b == nil {
		return nil
	}
	return &Conn{b: b, share: b.size / 8 * 5}
}

// Conn is the account of one client connection. A nil Conn has no bounds.
type Conn struct {
	b     *Budget
	share int64
	used  int64 // guarded by b.mu
}

// Hold returns a new hold of nothing. The function shed is called once, when
// the hold has to make room; it must neither block nor use a hold. The
// hold is to be released soon after.
func (c *Conn) Hold(shed func()) *Hold {
	if c == nil {
		return nil
	}
	return &Hold{conn: c, shed: shed}
}
