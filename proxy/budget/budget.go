// Package budget bounds the bytes that a session holds on behalf of its
// clients: request heads, bodies and answers that nobody has taken yet, and
// what an exchange costs while it is under way.
//
// There is one Budget for a session, a Conn for each client connection, and a
// Hold for whatever can be ended by itself: an HTTP/1.1 connection, an HTTP/2
// stream, a WebSocket. A hold takes bytes before it uses them. Where the budget
// is short, the holds that have stood still for longest are shed: they lose
// their bytes at once, and are told to end. So slow clients make room for those
// that move, and a client that takes all that there is only harms itself.
package budget

import (
	"container/list"
	"errors"
	"sync"
)

// Default is the size of a budget when nothing else is configured. With it, a
// session that is attacked stays within 64 MiB of what it takes when idle.
const Default = 24 << 20

// ErrShed is why a hold ended that had to make room.
var ErrShed = errors.New("serve: the session's memory budget is exhausted")

// Budget is the bytes that one session may hold. A nil Budget has no bounds.
type Budget struct {
	size int64

	mu    sync.Mutex
	used  int64
	still list.List // of *Hold that stand still, the longest first
}

// New returns a budget of size bytes; 0 means Default.
func New(size int64) *Budget {
	if size == 0 {
		size = Default
	}
	return &Budget{size: size}
}

// Used returns the bytes that are taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Conn returns the account of a new connection, which may take half of the
// budget.
func (b *Budget) Conn() *Conn {
	if b == nil {
		return nil
	}
	return &Conn{b: b, share: b.size / 2}
}

// Conn is the account of one client connection. A nil Conn has no bounds.
type Conn struct {
	b     *Budget
	share int64
	used  int64 // guarded by b.mu
}

// Hold returns a new hold of nothing. The function shed is called once, when
// the hold has to make room; it must neither block nor use a hold.
func (c *Conn) Hold(shed func()) *Hold {
	if c == nil {
		return nil
	}
	return &Hold{conn: c, shed: shed}
}

// Hold is the bytes of one thing that can be ended by itself. All methods of a
// nil Hold succeed.
type Hold struct {
	conn *Conn
	shed func()

	// Guarded by conn.b.mu.
	n    int64
	over bool          // it was shed
	at   *list.Element // in Budget.still; nil: it moves
}

// Take adds n bytes to the hold, and reports whether it may use them. Others
// that stand still may be shed for it.
func (h *Hold) Take(n int64) bool { return h.change(n, false, false) }

// Give returns n bytes that are no longer used.
func (h *Hold) Give(n int64) { h.change(-n, false, false) }

// Stall adds n bytes to a hold that stands still from now on, and reports
// whether it may use them.
func (h *Hold) Stall(n int64) bool { return h.change(n, true, false) }

// Move returns n bytes of a hold that goes on.
func (h *Hold) Move(n int64) { h.change(-n, false, true) }

// Release returns all that is held. The hold can be used again, unless it was
// shed.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	b := h.conn.b
	b.mu.Lock()
	defer b.mu.Unlock()
	h.move()
	h.add(-h.n)
}

// Shed reports whether the hold had to make room.
func (h *Hold) Shed() bool {
	if h == nil {
		return false
	}
	h.conn.b.mu.Lock()
	defer h.conn.b.mu.Unlock()
	return h.over
}

func (h *Hold) change(n int64, stall, move bool) bool {
	if h == nil {
		return true
	}
	b := h.conn.b
	b.mu.Lock()
	if h.over {
		b.mu.Unlock()
		return false
	}
	if stall || move {
		h.move()
	}
	victims, ok := h.room(n)
	if ok {
		h.add(max(n, -h.n))
	}
	if stall {
		h.at = b.still.PushBack(h)
	}
	b.mu.Unlock()
	for _, v := range victims {
		v.shed()
	}
	return ok
}

// room sheds what stands still until n more bytes fit, the connection's own
// first where it is its share that is short. b.mu is held.
func (h *Hold) room(n int64) (victims []*Hold, ok bool) {
	if n <= 0 {
		return nil, true
	}
	b, c := h.conn.b, h.conn
	for e := b.still.Front(); e != nil && (c.used+n > c.share || b.used+n > b.size); {
		v, next := e.Value.(*Hold), e.Next()
		if v != h && v.n > 0 && v.shed != nil && (v.conn == c || c.used+n <= c.share) {
			v.move()
			v.add(-v.n)
			v.over = true
			victims = append(victims, v)
		}
		e = next
	}
	return victims, c.used+n <= c.share && b.used+n <= b.size
}

// add counts n bytes. b.mu is held.
func (h *Hold) add(n int64) {
	h.n += n
	h.conn.used += n
	h.conn.b.used += n
}

// move takes the hold off the list of what stands still. b.mu is held.
func (h *Hold) move() {
	if h.at != nil {
		h.conn.b.still.Remove(h.at)
		h.at = nil
	}
}
