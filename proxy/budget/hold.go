package budget

import (
	"container/list"
	"time"
)

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
