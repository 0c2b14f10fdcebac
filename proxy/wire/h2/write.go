package h2

import (
	"bufio"
	"encoding/binary"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// write runs f, which writes whole frames to the buffer, while it holds c.mu. The
// buffer is flushed when no other writer waits for its turn: many small responses
// are sent in one TLS record.
func (c *connection) write(f func()) error {
	c.waiting.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := false
	defer c.unlessWhole(&whole)
	if c.gone == nil {
		c.begin()
		f()
	}
	whole = true
	return c.written()
}

// blocked is how many bytes a connection holds while its reader waits for the
// client to read: the buffers of both directions, and a TLS record.
const blocked = writeSize + 18<<10 + bufferSize

// answer calls write for the goroutine that reads. While the client does not read
// what it writes, the connection's buffers count in the session's budget, and may
// be shed.
func (c *connection) answer(f func()) error {
	c.mu.Lock()
	if c.answers++; c.moved {
		c.answers, c.moved = 1, false
	}
	c.mu.Unlock()
	if c.answers > maxAnswers {
		return connError{http2.ErrCodeEnhanceYourCalm, "the client makes the session answer frames, and nothing else moves"}
	}
	counted := make(chan struct{})
	stalled := time.AfterFunc(stallsAfter, func() {
		defer close(counted)
		if !c.in.hold.Stall(blocked) {
			c.shed()
		}
	})
	err := c.write(f)
	if !stalled.Stop() {
		<-counted
		c.in.hold.Move(blocked)
	}
	return err
}

// maxAnswers bounds the frames that the reading goroutine has to answer (PING,
// SETTINGS, frames that are answered with a reset) while no stream makes progress:
// a flood of them costs processor time (CVE-2019-9512, CVE-2019-9515).
const maxAnswers = 10_000

// stallsAfter is how long a write may take before its client counts as one that
// does not read. Tests change it.
var stallsAfter = 20 * time.Millisecond

const writeSize = 32 << 10

var writeBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeSize) }}

// begin allocates the buffer, if there is none. c.mu is held.
func (c *connection) begin() {
	if c.bw == nil {
		c.bw = writeBuffers.Get().(*bufio.Writer)
		c.bw.Reset(deadlineWriter{c})
	}
}

// unlessWhole closes the connection if a writer panicked in its turn: it may have
// written half a frame. c.mu is held.
func (c *connection) unlessWhole(whole *bool) {
	if *whole {
		return
	}
	c.waiting.Add(-1)
	c.gone = errGone
	c.grown.Broadcast()
	_ = c.conn.Close()
}

// written ends a writer's turn, and flushes after the last one. c.mu is held.
func (c *connection) written() error {
	if c.waiting.Add(-1) > 0 {
		return c.gone
	}
	return c.flush()
}

// writtenLast is written for the end of a response. While other streams are open,
// the goroutines that can run do so first: what they write is sent in the same TLS
// record. It waits for nothing else. c.mu is held.
func (c *connection) writtenLast() error {
	if c.open == 0 {
		return c.written()
	}
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
	c.waiting.Add(-1)
	return c.flush() // although others may wait: they could do so without end
}

// flush sends what is in the buffer. c.mu is held.
func (c *connection) flush() error {
	if c.gone != nil || c.bw == nil {
		return c.gone
	}
	if err := c.bw.Flush(); err != nil {
		c.gone = errGone
		c.grown.Broadcast()
		_ = c.conn.Close()
		return c.gone
	}
	c.bw.Reset(nil)
	writeBuffers.Put(c.bw)
	c.bw = nil
	return nil
}

// frameHead writes a frame header (RFC 9113 section 4.1).
func (c *connection) frameHead(length int, t http2.FrameType, flags http2.Flags, id uint32) {
	binary.BigEndian.PutUint32(c.header[:4], uint32(length)<<8) //nolint:gosec // at most a frame
	c.header[3], c.header[4] = byte(t), byte(flags)
	binary.BigEndian.PutUint32(c.header[5:], id)
	_, _ = c.bw.Write(c.header[:])
}

func (c *connection) number(n uint32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	_, _ = c.bw.Write(b[:])
}

func (c *connection) windowUpdate(id uint32, n int64) {
	c.frameHead(4, http2.FrameWindowUpdate, 0, id)
	c.number(uint32(n)) //nolint:gosec // at most a window of ours
}

// reset ends a stream from our side. c.mu is held.
func (c *connection) reset(id uint32, code http2.ErrCode) {
	c.resets[c.nextReset%len(c.resets)] = id
	c.nextReset++
	c.frameHead(4, http2.FrameRSTStream, 0, id)
	c.number(uint32(code))
}

// goAway sends GOAWAY with the reason for which the connection ends. It flushes, although
// a writer may have let others run and would flush later (see writtenLast): the connection
// is closed next, and that writer's response, which is complete, must be sent before.
func (c *connection) goAway(code http2.ErrCode) {
	_ = c.write(func() {
		c.frameHead(8, http2.FrameGoAway, 0, 0)
		c.number(c.lastID)
		c.number(uint32(code))
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.flush() // also what waits for that writer
}

// goAwayGently asks the client to open no more streams. Open ones continue; after
// the last one the connection is closed.
func (c *connection) goAwayGently() {
	c.mu.Lock()
	already := c.closing
	c.closing = true
	c.mu.Unlock()
	if already {
		return
	}
	// The highest number: streams that are in transit still get a response, a
	// rejection (RFC 9113 section 6.8).
	_ = c.write(func() {
		c.frameHead(8, http2.FrameGoAway, 0, 0)
		c.number(windowLimit)
		c.number(uint32(http2.ErrCodeNo))
	})
	c.awaitFrame() // without open streams the reader ends soon
}

// fields sends one field section. c.mu is held from its first frame to its last:
// no other frame may come between (RFC 9113 section 4.3).
func (c *connection) fields(id uint32, end bool, head *responseHead) {
	pooled := blocks.Get().(*[]byte)
	block := (*pooled)[:0]
	if !c.tableless {
		block, c.tableless = append(block, noTable), true
	}
	block = appendFields(block, head)
	if *pooled = block; cap(block) <= writeSize {
		defer blocks.Put(pooled)
	}
	flags := http2.Flags(0)
	if end {
		flags |= http2.FlagHeadersEndStream
	}
	t := http2.FrameHeaders
	for {
		part := block[:min(len(block), c.peerFrame)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		c.frameHead(len(part), t, flags, id)
		_, _ = c.bw.Write(part)
		if len(block) == 0 {
			return
		}
		t, flags = http2.FrameContinuation, 0
	}
}

// blocks holds what field sections are encoded in.
var blocks = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}
