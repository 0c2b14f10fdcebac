// Package budget bounds the memory that a session holds on behalf of its clients:
// request heads while they arrive, bodies that have not been read yet, and the cost
// of each exchange in progress.
//
// [New] returns the one [Budget] of a session. It has a [Conn] for each client
// connection, and that a [Hold] for each part that can be ended alone: an HTTP/1.1
// connection, an HTTP/2 stream, a WebSocket. A hold takes bytes before it uses them:
//
//	hold := b.Conn().Hold(cancel)
//	defer hold.Release()
//	if !hold.Take(size) {
//		return budget.ErrShed
//	}
//
// If the budget is exhausted, the holds that have stood still for longest are shed,
// first those of connections that hold more than an equal share: their bytes count
// as free, and their shed function is called to end them. Slow clients thus make
// room for others, and a client that takes everything harms only itself.
package budget

import (
	"errors"
	"sync"
)

// Default is the size of a budget when nothing else is configured. With it, a
// session under attack stays within 64 MiB of its idle size.
const Default = 20 << 20

// ErrShed is the cause with which a shed hold is canceled.
var ErrShed = errors.New("serve: the session's memory budget is exhausted")

// Budget bounds the bytes that one session may hold. A nil Budget has no bound.
type Budget struct {
	size int64

	mu     sync.Mutex
	used   int64
	active int64         // connections that hold anything
	doomed int64         // bytes of shed holds that have not been released yet
	ended  chan struct{} // closed when doomed shrinks; nil: nothing waits for it
	still  queue         // the holds that stand still, longest first
}

// New returns a budget of size bytes; 0 means Default.
func New(size int64) *Budget {
	if size == 0 {
		size = Default
	}
	return &Budget{size: size}
}

// Size returns how many bytes may be taken.
func (b *Budget) Size() int64 { return b.size }

// Reserve permanently removes n bytes from the budget, for memory that no hold
// counts. It must be called before the budget is used.
func (b *Budget) Reserve(n int64) { b.size -= n }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Tight reports whether more than a quarter is taken. What is held beside the budget for each exchange, and is little
// for a few hundred of them, must then be small.
func (b *Budget) Tight() bool { return b != nil && b.Used() > b.size/4 }

// Conn returns the account of a new connection, which may take five eighths of the
// budget.
func (b *Budget) Conn() *Conn {
	if b == nil {
		return nil
	}
	return &Conn{b: b, share: b.size / 8 * 5}
}

// Conn is the account of one client connection. A nil Conn has no bound.
type Conn struct {
	b     *Budget
	share int64
	used  int64 // guarded by b.mu
}

// Tight is [Budget.Tight] of the session's budget.
func (c *Conn) Tight() bool { return c != nil && c.b.Tight() }

// Hold returns a new, empty hold. If the hold must make room, shed is called once; it
// must neither block nor use a hold. The hold must be released soon after.
func (c *Conn) Hold(shed func()) *Hold {
	if c == nil {
		return nil
	}
	return &Hold{conn: c, shed: shed}
}

// Beside returns a new hold of the same connection, as [Conn.Hold] does.
func (h *Hold) Beside(shed func()) *Hold {
	if h == nil {
		return nil
	}
	return h.conn.Hold(shed)
}
