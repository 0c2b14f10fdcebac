package h2

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// inbox is the connection's inbound half. It chooses the read deadline: none while
// streams are open and no frame has begun, the idle time without streams, and the
// head time from a frame's first byte to its last, continuations included. It has
// a buffer, and takes bytes of the budget, only while it has unread bytes.
type inbox struct {
	c      *connection
	inside bool // a frame has begun
	armed  bool // its deadline is set

	buf  *[bufferSize]byte // unread bytes are buf[r:w]
	r, w int

	hold *budget.Hold
	held int64 // bytes that hold has
	got  int64 // bytes of this frame
}

const bufferSize = maxFrame + 9

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// next ends a frame. The next byte begins another.
func (i *inbox) next() {
	i.inside, i.armed, i.got = i.r < i.w, false, 0
	i.release()
	if i.inside {
		return
	}
	i.free()
	if i.c.large && i.c.idleNow() {
		i.c.renew() // the framer keeps the buffer of its largest frame
	}
}

// release returns the frame's bytes to the budget. It is called before the frame
// is handled: the reader may then wait for what was shed, and must not itself be
// part of that.
func (i *inbox) release() {
	if i.held > 0 {
		i.hold.Move(i.held)
		i.held = 0
	}
}

func (i *inbox) free() {
	if i.buf != nil {
		buffers.Put(i.buf)
		i.buf, i.r, i.w = nil, 0, 0
	}
}

// close frees the buffer and the hold, after the last read.
func (i *inbox) close() {
	i.free()
	i.hold.Release()
}

// Read implements io.Reader for the framer. It waits for the first byte of a frame
// without a buffer.
func (i *inbox) Read(p []byte) (int, error) {
	if i.r < i.w {
		n := copy(p, i.buf[i.r:i.w])
		i.r += n
		return n, nil
	}
	i.deadline()
	if i.c.ctx.Err() != nil {
		return 0, errGone // its deadline may have been overwritten
	}
	if !i.inside {
		n, err := i.c.conn.Read(p[:1])
		i.inside = n > 0
		i.got = int64(n)
		return n, err
	}
	if !i.room() {
		i.c.shed()
		return 0, budget.ErrShed
	}
	if i.buf == nil {
		i.buf = buffers.Get().(*[bufferSize]byte)
	}
	n, err := i.c.conn.Read(i.buf[:])
	i.got += int64(n)
	i.r, i.w = 0, n
	if n == 0 {
		return 0, err
	}
	i.r = copy(p, i.buf[:n])
	return i.r, nil
}

// room takes from the budget what another read of this frame may need: the buffer,
// the framer's own, and for a field section its decoded fields. Until its last
// byte a frame stands still: it waits for the client.
func (i *inbox) room() bool {
	if need := 2*bufferSize + 3*i.got; need > i.held {
		if !i.hold.Stall(need - i.held) {
			return false
		}
		i.held = need
	}
	return true
}

func (i *inbox) deadline() {
	switch {
	case i.inside && !i.armed:
		i.armed = true
		_ = i.c.conn.SetReadDeadline(time.Now().Add(i.c.limits.Header))
		if i.c.ctx.Err() != nil { // its end has set a deadline, which must stay in force
			_ = i.c.conn.SetReadDeadline(time.Unix(1, 0))
		}
	case !i.inside:
		i.c.awaitFrame()
	}
}

// renew replaces the framer. Only the state of the header compression must be
// kept.
func (c *connection) renew() {
	c.large = false
	c.framer = http2.NewFramer(nil, &c.in)
	c.framer.ReadMetaHeaders = c.decoder
	c.framer.MaxHeaderListSize = uint32(c.limits.Head) //nolint:gosec // a limit of ours
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.SetReuseFrames()
}

// idleNow reports whether no stream is open.
func (c *connection) idleNow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) == 0
}

// isShed reports whether ctx was canceled because its connection or stream was shed.
func isShed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), budget.ErrShed) }
