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
	"time"
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

// Hold is the bytes of one thing that can be ended by itself. All methods of a
// nil Hold succeed.
type Hold struct {
	conn *Conn
	shed func()

	// Guarded by conn.b.mu.
	n      int64
	over   bool          // it was shed
	doomed int64         // what it then had, until it is released
	at     *list.Element // in Budget.still; nil: it moves
}

// Take adds n bytes to the hold, and reports whether it may use them. Where the
// budget is short, others that stand still are shed, and it waits until most of
// what was shed has ended: so many that come at once do not add up.
func (h *Hold) Take(n int64) bool { return h.TryTake(n) && h.settle(n) }

// TryTake is Take without the wait.
func (h *Hold) TryTake(n int64) bool { return h.change(n, false) }

// Stall is Take for a hold that stands still from then on. Without bytes it does
// not wait.
func (h *Hold) Stall(n int64) bool { return h.change(n, true) && h.settle(n) }

// settle waits until what was shed and has not ended is little, but not for
// ever, and reports whether the hold may go on.
func (h *Hold) settle(n int64) bool {
	if h == nil || n <= 0 {
		return true
	}
	b := h.conn.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.doomed <= b.size/8 {
		return !h.over
	}
	late := time.NewTimer(maxWait)
	defer late.Stop()
	for b.doomed > b.size/8 && !h.over {
		if b.ended == nil {
			b.ended = make(chan struct{})
		}
		ended := b.ended
		b.mu.Unlock()
		select {
		case <-ended:
			b.mu.Lock()
		case <-late.C:
			b.mu.Lock()
			return !h.over
		}
	}
	return !h.over
}

func (h *Hold) change(n int64, stall bool) bool {
	if h == nil {
		return true
	}
	b := h.conn.b
	b.mu.Lock()
	if h.over { // the others make no room for it
		b.mu.Unlock()
		return false
	}
	if stall {
		h.move()
	}
	victims, ok := h.room(n)
	if ok {
		h.add(n)
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

// Give releases n bytes that are no longer used.
func (h *Hold) Give(n int64) { h.giveBack(n, false) }

// Move releases n bytes of a hold that no longer stands still.
func (h *Hold) Move(n int64) { h.giveBack(n, true) }

func (h *Hold) giveBack(n int64, move bool) {
	if h == nil {
		return
	}
	h.conn.b.mu.Lock()
	defer h.conn.b.mu.Unlock()
	if h.over {
		return
	}
	if move {
		h.move()
	}
	h.add(-min(n, h.n))
}

// maxWait is the most that a hold waits for what was shed.
const maxWait = 10 * time.Second

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
	if h.doomed > 0 {
		b.wake()
	}
	b.doomed -= h.doomed
	h.doomed = 0
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

// room sheds what stands still until n more bytes fit, the
// connection's own first where it is its share that is short. b.mu is held.
func (h *Hold) room(n int64) (victims []*Hold, ok bool) {
	if n <= 0 {
		return nil, true
	}
	b, c := h.conn.b, h.conn
	if c.used+n > c.share {
		victims = h.shedStill(n, func(v *Hold) bool { return v.conn == c })
	}
	if c.used+n > c.share {
		return victims, false
	}
	// Connections that hold more than an equal part make room first, then those
	// that hold no less than the one that asks. A client that takes its answers
	// holds little, and may still stand still for a moment: only one that holds
	// as little may end it.
	little := b.size / 64
	most := max(b.size/max(b.active, 1), little)
	victims = append(victims, h.shedStill(n, func(v *Hold) bool { return v.conn.used > most })...)
	victims = append(victims, h.shedStill(n, func(v *Hold) bool { return v.conn != c && v.conn.used >= c.used })...)
	if c.used <= little {
		victims = append(victims, h.shedStill(n, func(*Hold) bool { return true })...)
	}
	return victims, b.used+n <= b.size
}

// shedStill sheds such of the others that stand still, the longest first, until
// n more bytes fit. b.mu is held.
func (h *Hold) shedStill(n int64, such func(*Hold) bool) (victims []*Hold) {
	b, c := h.conn.b, h.conn
	for e := b.still.Front(); e != nil && (c.used+n > c.share || b.used+n > b.size); {
		v, next := e.Value.(*Hold), e.Next()
		if v != h && v.n > 0 && v.shed != nil && such(v) {
			v.move()
			v.doomed = v.n
			b.doomed += v.n
			v.add(-v.n)
			v.over = true
			victims = append(victims, v)
		}
		e = next
	}
	if len(victims) > 0 {
		b.wake() // a victim that waits for others must end instead
	}
	return victims
}

// wake makes those that wait in settle look again. b.mu is held.
func (b *Budget) wake() {
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
}

// add counts n bytes. b.mu is held.
func (h *Hold) add(n int64) {
	b, was := h.conn.b, h.conn.used
	h.n += n
	h.conn.used += n
	b.used += n
	switch {
	case was == 0 && h.conn.used > 0:
		b.active++
	case was > 0 && h.conn.used == 0:
		b.active--
	}
}

// move takes the hold off the list of what stands still. b.mu is held.
func (h *Hold) move() {
	if h.at != nil {
		h.conn.b.still.Remove(h.at)
		h.at = nil
	}
}
