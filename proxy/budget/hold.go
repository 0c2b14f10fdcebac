package budget

import "time"

// Hold is the bytes of one thing that can be ended alone. All methods of a nil Hold
// succeed.
type Hold struct {
	conn *Conn
	shed func()

	// Guarded by conn.b.mu.
	n      int64
	over   bool  // it was shed
	doomed int64 // the bytes that it had when it was shed, until it is released

	still      bool  // it is in Budget.still
	prev, next *Hold // there
}

// Take adds n bytes to the hold, and reports whether it may use them. If the budget is
// exhausted, it sheds others that stand still, and waits until most shed bytes are
// released: otherwise many concurrent calls would exceed the budget together.
func (h *Hold) Take(n int64) bool { return h.TryTake(n) && h.settle(n) }

// TryTake is Take without the wait. It reports whether the hold may use n bytes.
func (h *Hold) TryTake(n int64) bool { return h.change(n, false) }

// Stall is Take for a hold that stands still from now on. If n is 0 it does not wait.
func (h *Hold) Stall(n int64) bool { return h.change(n, true) && h.settle(n) }

// settle waits up to maxWait until few shed bytes are unreleased, and reports whether
// the hold may continue.
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
	if h.over { // others are not shed for it
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
		b.still.push(h)
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

// maxWait is how long a hold waits at most for shed bytes to be released.
const maxWait = 10 * time.Second

// Release returns all bytes of the hold. The hold can be used again, unless it was
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

// Shed reports whether the hold was shed.
func (h *Hold) Shed() bool {
	if h == nil {
		return false
	}
	h.conn.b.mu.Lock()
	defer h.conn.b.mu.Unlock()
	return h.over
}
