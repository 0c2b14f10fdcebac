package budget

// room sheds holds that stand still until n more bytes fit, and first the
// connection's own if its share is exhausted. It returns the shed holds, and reports
// whether the bytes fit. b.mu is held.
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
	// Connections that hold more than an equal share make room first, then those
	// that hold no less than the one that asks. A client that reads its responses
	// holds little, and may still stand still for a moment: only one that holds as
	// little may shed it.
	little := b.size / 64
	most := max(b.size/max(b.active, 1), little)
	victims = append(victims, h.shedStill(n, func(v *Hold) bool { return v.conn.used > most })...)
	// One that asks for much at once sheds none that holds far less than it will: an
	// exchange that waits for its upstream may have stood still for longest.
	much := max(c.used, (c.used+n)/4)
	victims = append(victims, h.shedStill(n, func(v *Hold) bool { return v.conn != c && v.conn.used >= much })...)
	victims = append(victims, h.shedStill(n, func(v *Hold) bool { return v.conn != c && v.conn.used >= c.used })...)
	if c.used <= little {
		victims = append(victims, h.shedStill(n, func(*Hold) bool { return true })...)
	}
	return victims, b.used+n <= b.size
}

// shedStill sheds other holds that stand still and for which such returns true,
// longest first, until n more bytes fit. b.mu is held.
func (h *Hold) shedStill(n int64, such func(*Hold) bool) (victims []*Hold) {
	b, c := h.conn.b, h.conn
	for v := b.still.first; v != nil && (c.used+n > c.share || b.used+n > b.size); {
		next := v.next
		if v != h && v.n > 0 && v.shed != nil && such(v) {
			v.move()
			v.doomed = v.n
			b.doomed += v.n
			v.add(-v.n)
			v.over = true
			victims = append(victims, v)
		}
		v = next
	}
	if len(victims) > 0 {
		b.wake() // a victim that waits for shed bytes must end instead
	}
	return victims
}

// wake wakes the calls of settle. b.mu is held.
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

// move removes the hold from the queue of those that stand still. b.mu is held.
func (h *Hold) move() {
	if h.still {
		h.conn.b.still.remove(h)
	}
}

// queue is a doubly linked list of holds, whose links are the holds' own: each
// exchange stands still several times, which must not allocate. The zero value is
// empty.
type queue struct{ first, last *Hold }

// push adds h, which is in no queue, behind the others.
func (q *queue) push(h *Hold) {
	h.still, h.prev, h.next = true, q.last, nil
	if q.last == nil {
		q.first = h
	} else {
		q.last.next = h
	}
	q.last = h
}

// remove takes h out of the queue, which it is in.
func (q *queue) remove(h *Hold) {
	if h.prev == nil {
		q.first = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next == nil {
		q.last = h.prev
	} else {
		h.next.prev = h.prev
	}
	h.still, h.prev, h.next = false, nil, nil
}
