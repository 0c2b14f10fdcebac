package h2

import (
	"bufio"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// write runs f, which puts whole frames into the buffer, alone. The buffer
// leaves when no other writer waits for its turn: many small answers leave as
// one TLS record.
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

// blocked is what a connection holds while its reader waits for the client to
// take something: the buffers of both directions, and a TLS record.
const blocked = writeSize + 18<<10 + bufferSize

// answer is write for the goroutine that reads. A client that does not take what
// it writes stands still: the connection's buffers then count in the session's
// budget, and may have to make room.
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

// maxAnswers bounds what the goroutine that reads has to answer (PING, SETTINGS,
// frames that a reset answers) while no stream moves on: a flood of them costs
// processor time (CVE-2019-9512, CVE-2019-9515).
const maxAnswers = 10_000

// stallsAfter is how long a write lasts before its client counts as one that
// does not read.
const stallsAfter = 20 * time.Millisecond

const writeSize = 32 << 10

var writeBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeSize) }}

// begin makes sure of the buffer. c.mu is held.
func (c *connection) begin() {
	if c.bw == nil {
		c.bw = writeBuffers.Get().(*bufio.Writer)
		c.bw.Reset(deadlineWriter{c})
	}
}

// unlessWhole ends the connection when a writer panicked in its turn: it may
// have left half a frame. c.mu is held.
func (c *connection) unlessWhole(whole *bool) {
	if *whole {
		return
	}
	c.waiting.Add(-1)
	c.gone = errGone
	c.grown.Broadcast()
	_ = c.conn.Close()
}

// written ends a writer's turn. c.mu is held.
func (c *connection) written() error {
	if c.waiting.Add(-1) == 0 && c.gone == nil && c.bw != nil {
		if err := c.bw.Flush(); err != nil {
			c.gone = errGone
			c.grown.Broadcast()
			_ = c.conn.Close()
			return c.gone
		}
		c.bw.Reset(nil)
		writeBuffers.Put(c.bw)
		c.bw = nil
	}
	return c.gone
}

// frameHead writes a frame's nine bytes (RFC 9113 section 4.1).
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

// goAway says that the connection ends, and why.
func (c *connection) goAway(code http2.ErrCode) {
	_ = c.write(func() {
		c.frameHead(8, http2.FrameGoAway, 0, 0)
		c.number(c.lastID)
		c.number(uint32(code))
	})
}

// goAwayGently asks the client to open no more streams here. Those that are
// open go on; after the last one the connection ends.
func (c *connection) goAwayGently() {
	c.mu.Lock()
	already := c.closing
	c.closing = true
	c.mu.Unlock()
	if already {
		return
	}
	// The highest number: streams that are on their way are answered, with a
	// refusal (RFC 9113 section 6.8).
	_ = c.write(func() {
		c.frameHead(8, http2.FrameGoAway, 0, 0)
		c.number(windowLimit)
		c.number(uint32(http2.ErrCodeNo))
	})
	c.awaitFrame() // with no stream open, the reader ends soon
}

// fields encodes one field section into c.block and sends it. c.mu is held,
// from the first field to the last byte: the compression has a state.
func (c *connection) fields(id uint32, end bool, status int, h http.Header, length int64) {
	c.block.Reset()
	if status > 0 {
		c.field(":status", strconv.Itoa(status))
	}
	for name, values := range h {
		if hopFields[name] {
			continue
		}
		lower := lowered(name)
		for _, v := range values {
			c.field(lower, v)
		}
	}
	if length >= 0 {
		c.field("content-length", strconv.FormatInt(length, 10))
	}
	block := c.block.Bytes()
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

func (c *connection) field(name, value string) {
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
}

// Fields of one HTTP/1.1 hop have no place in HTTP/2 (RFC 9113 section 8.2.2);
// the length is ours to say.
var hopFields = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// common are the lower-case names of fields that most answers have.
var common = map[string]string{
	"Content-Type": "content-type", "Date": "date", "Server": "server", "Cache-Control": "cache-control", "Vary": "vary",
	"Etag": "etag", "Last-Modified": "last-modified", "Grpc-Status": "grpc-status", "Grpc-Message": "grpc-message",
	"X-Aileron-Audit-Id": "x-aileron-audit-id", "X-Content-Type-Options": "x-content-type-options",
}

func lowered(name string) string {
	if l, ok := common[name]; ok {
		return l
	}
	return strings.ToLower(name)
}
