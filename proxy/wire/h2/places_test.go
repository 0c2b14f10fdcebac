package h2

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// closing is a body that ends, and whose Close returns when held does.
type closing struct {
	io.Reader
	held chan struct{}
}

func (c closing) Close() error { <-c.held; return nil }

// full opens as many streams as a client may, and returns what opens another.
func full(c *frames, method string) (next func() uint32) {
	id := uint32(1)
	next = func() uint32 {
		c.open(id, method == "GET", asks(method, "/x")...)
		id += 2
		return id - 2
	}
	for range maxStreams {
		next()
	}
	return next
}

// served reads until all of these streams have their response, and fails when
// one is reset.
func (c *frames) served(t *testing.T, ids []uint32) {
	t.Helper()
	c.await(t, func(f http2.Frame) bool {
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			if slices.Contains(ids, f.StreamID) {
				t.Fatalf("stream %d was reset with %v", f.StreamID, f.ErrCode)
			}
		case *http2.MetaHeadersFrame:
			ids = slices.DeleteFunc(ids, func(id uint32) bool { return id == f.StreamID })
		}
		return len(ids) == 0
	})
}

// RFC 9113 section 5.1.2: a stream that is closed no longer counts, although
// what served it has not returned.
func TestAClosedStreamCountsNoLonger(t *testing.T) {
	for name, by := range map[string]struct {
		method string
		shut   func(*frames, uint32)
	}{
		"END_STREAM of the response": {"GET", func(*frames, uint32) {}},
		"END_STREAM after a response that came early": {"POST",
			func(c *frames, id uint32) { _ = c.WriteData(id, true, nil) }},
		"trailers after a response that came early": {"POST",
			func(c *frames, id uint32) { c.open(id, true, "x-trailer", "1") }},
		"RST_STREAM": {"POST", func(c *frames, id uint32) { _ = c.WriteRSTStream(id, http2.ErrCodeCancel) }},
	} {
		t.Run(name, func(t *testing.T) {
			held := make(chan struct{})
			defer close(held)
			c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
				return status(200, r, closing{strings.NewReader("early"), held}, 5)
			}))
			_ = c.WriteSettings()
			next := full(c, by.method)
			ended := 0
			c.await(t, func(f http2.Frame) bool {
				if d, ok := f.(*http2.DataFrame); ok && d.StreamEnded() {
					ended++
				}
				return ended == maxStreams
			})
			var others []uint32
			for i := range uint32(maxEnding - 1) {
				by.shut(c, 2*i+1)
				others = append(others, next())
			}
			c.served(t, others)
		})
	}
}

// A stream that the server resets is free with the reset.
func TestAStreamThatIsResetCountsNoLonger(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		return status(200, r, closing{strings.NewReader("early"), held}, 5)
	}))
	_ = c.WriteSettings()
	next := full(c, "POST")
	_ = c.WriteWindowUpdate(1, windowLimit) // more than a window may be
	c.isReset(t, 1, http2.ErrCodeFlowControl)
	c.served(t, []uint32{next()})
}

// A stream that its client broke is reset with the reason, however quickly the
// handler that reads its body returns.
func TestABrokenStreamIsResetWithItsReason(t *testing.T) {
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		_, _ = io.Copy(io.Discard, r.Body)
		return status(400, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	for id := uint32(1); id < 1000; id += 2 {
		c.open(id, false, append(asks("POST", "/x"), "content-length", "1")...)
		_ = c.WriteData(id, true, []byte("more"))
		c.await(t, func(f http2.Frame) bool {
			r, ok := f.(*http2.RSTStreamFrame)
			if ok && (r.StreamID != id || r.ErrCode != http2.ErrCodeProtocol) {
				t.Fatalf("stream %d was reset with %v, want stream %d with PROTOCOL_ERROR", r.StreamID, r.ErrCode, id)
			}
			return ok
		})
	}
}

// Resets do not add up: streams whose handlers have not returned are bounded.
func TestResetStreamsAreBoundedToo(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		<-held
		return status(200, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	next := full(c, "GET")
	for i := range uint32(maxEnding) {
		_ = c.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
	}
	c.isReset(t, next(), http2.ErrCodeRefusedStream)
}

// isReset fails unless the server has reset a stream, with code, because of
// what was written last.
func (c *frames) isReset(t *testing.T, id uint32, code http2.ErrCode) {
	t.Helper()
	_ = c.WritePing(false, [8]byte{}) // whose answer comes after the reset
	c.await(t, func(f http2.Frame) bool {
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			if f.StreamID != id || f.ErrCode != code {
				t.Errorf("stream %d was reset with %v, want %d and %v", f.StreamID, f.ErrCode, id, code)
			}
			return true
		case *http2.PingFrame:
			t.Errorf("stream %d was not reset, want %v", id, code)
			return true
		}
		return false
	})
}

// padded is one DATA frame that is mostly padding.
func padded(c *frames, id uint32, data byte) {
	_ = c.WriteDataPadded(id, false, []byte{data}, make([]byte, 255))
}

// RFC 9113 section 6.9.1: padding counts against both windows, and comes back
// to both although no reader of the body ever sees it.
func TestPaddingComesBackToTheWindows(t *testing.T) {
	const size = 1 + 1 + 255 // Pad Length, a byte, padding
	got := make(chan int64, 1)
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
		return status(200, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	c.open(1, false, asks("POST", "/x")...)
	whole, part := int64(65535), int64(streamWindow)
	const want = 3 * connWindow / size
	for range want {
		if min(whole, part) < size {
			_ = c.WritePing(false, [8]byte{}) // what comes back was sent before its answer
			c.await(t, func(f http2.Frame) bool {
				switch f := f.(type) {
				case *http2.WindowUpdateFrame:
					if f.StreamID == 0 {
						whole += int64(f.Increment)
					} else {
						part += int64(f.Increment)
					}
				case *http2.PingFrame:
					return true
				}
				return false
			})
		}
		if min(whole, part) < size {
			t.Fatalf("%d bytes are left of the connection's window, and %d of the stream's", whole, part)
		}
		padded(c, 1, 'x')
		whole, part = whole-size, part-size
	}
	_ = c.WriteData(1, true, nil)
	c.served(t, []uint32{1})
	if n := <-got; n != want {
		t.Errorf("the body has %d bytes, want %d", n, want)
	}
}

// Padding is no way around a window.
func TestPaddingCountsAgainstTheWindow(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		<-held
		return status(200, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	c.open(1, false, asks("POST", "/x")...)
	for range 4 { // which are not read: the window has 4 KiB left
		_ = c.WriteData(1, false, make([]byte, 15<<10))
	}
	for range 4<<10/257 + 1 { // and too little padding to come back at once
		padded(c, 1, 'x')
	}
	c.isReset(t, 1, http2.ErrCodeFlowControl)
}
