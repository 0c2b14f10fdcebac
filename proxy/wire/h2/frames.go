package h2

import (
	"golang.org/x/net/http2"
)

// frame handles one frame. An http2.StreamError ends the stream, a connError the
// connection.
func (c *connection) frame(f http2.Frame) error {
	if !c.settled {
		if _, ok := f.(*http2.SettingsFrame); !ok {
			return protocolError("the client's first frame is not SETTINGS") // RFC 9113 section 3.4
		}
		c.settled = true
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.WindowUpdateFrame:
		return c.grow(f)
	case *http2.RSTStreamFrame:
		return c.resetByPeer(f)
	case *http2.PingFrame:
		return c.ping(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return protocolError("a client cannot push")
	case *http2.GoAwayFrame:
		c.goAwayGently()
	}
	return nil
}

func (c *connection) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > 100 {
		return connError{http2.ErrCodeEnhanceYourCalm, "a SETTINGS frame has more values than there are settings"}
	}
	var bad error
	err := c.answer(func() {
		bad = f.ForeachSetting(c.setting)
		if bad == nil {
			c.frameHead(0, http2.FrameSettings, http2.FlagSettingsAck, 0)
		}
		c.grown.Broadcast()
	})
	if bad != nil {
		return bad
	}
	return err
}

// setting applies one of the client's settings. c.mu is held.
func (c *connection) setting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingMaxFrameSize:
		c.peerFrame = min(int(s.Val), 64<<10)
	case http2.SettingInitialWindowSize:
		delta := int64(s.Val) - c.initialSend
		c.initialSend = int64(s.Val)
		for _, st := range c.streams {
			if st.sendWindow += delta; st.sendWindow > windowLimit {
				return connError{http2.ErrCodeFlowControl, "a stream's window is too large"}
			}
		}
	}
	return nil
}

func (c *connection) ping(f *http2.PingFrame) error {
	if f.IsAck() {
		return nil
	}
	return c.answer(func() {
		c.frameHead(8, http2.FramePing, http2.FlagPingAck, 0)
		_, _ = c.bw.Write(f.Data[:])
	})
}

func (c *connection) grow(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.grown.Broadcast()
	if f.StreamID == 0 {
		if c.sendWindow += int64(f.Increment); c.sendWindow > windowLimit {
			return connError{http2.ErrCodeFlowControl, "the connection's window is too large"}
		}
		return nil
	}
	st := c.streams[f.StreamID]
	switch {
	case st == nil && c.idle(f.StreamID):
		return protocolError("a window grows on a stream that was never opened")
	case st == nil:
		return nil
	}
	if st.sendWindow += int64(f.Increment); st.sendWindow > windowLimit {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	return nil
}

// errLeft is returned for a frame on a stream that the client itself has reset:
// from then on the stream is closed for both sides (RFC 9113 section 5.1).
var errLeft = connError{http2.ErrCodeStreamClosed, "the client goes on with a stream that it has reset"}

// idle reports whether the client has not opened the stream yet.
func (c *connection) idle(id uint32) bool { return id%2 == 0 || id > c.lastID }

func (c *connection) resetByPeer(f *http2.RSTStreamFrame) error {
	if c.idle(f.StreamID) {
		return protocolError("a stream that was never opened is reset")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.streams[f.StreamID]; st != nil {
		c.shut(st) // a reset is not answered with one
		st.left = true
		st.end(errReset)
		c.grown.Broadcast()
	}
	return nil
}

// data handles a piece of a request body. Flow control counts padding too (RFC
// 9113 section 6.9.1).
func (c *connection) data(f *http2.DataFrame) error {
	size := int64(f.Length)
	if c.idle(f.StreamID) {
		return protocolError("data comes on a stream that was never opened")
	}
	c.mu.Lock()
	st := c.streams[f.StreamID]
	c.moved = c.moved || st != nil
	c.recvWindow -= size
	over, left := c.recvWindow < 0, st != nil && st.left
	c.mu.Unlock()
	switch {
	case over:
		return connError{http2.ErrCodeFlowControl, "the client sent more than it may"}
	case left:
		return errLeft
	}
	if st == nil {
		c.giveBack(nil, size)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	code, kept := st.take(f.Data(), size, f.StreamEnded())
	padding := size - int64(len(f.Data()))
	switch {
	case !kept:
		c.giveBack(nil, size)
	case padding > 0: // no reader ever consumes it
		c.giveBack(st, padding)
	}
	if code != http2.ErrCodeNo {
		return http2.StreamError{StreamID: f.StreamID, Code: code}
	}
	if f.StreamEnded() {
		c.endedByPeer(st)
	}
	return nil
}

// giveBack returns n consumed bytes to the client's windows, in large steps. st is
// nil for bytes of a stream that is not read any more.
func (c *connection) giveBack(st *stream, n int64) {
	c.mu.Lock()
	c.recvOwed += n
	whole := c.recvOwed >= connWindow/4
	part := false
	if st != nil {
		st.recvOwed += n
		part = st.recvOwed >= streamWindow/4 && !st.closed
	}
	c.mu.Unlock()
	if !whole && !part {
		return
	}
	_ = c.write(func() {
		if c.recvOwed >= connWindow/4 {
			c.windowUpdate(0, c.recvOwed)
			c.recvWindow += c.recvOwed
			c.recvOwed = 0
		}
		if part && !st.closed && st.recvOwed > 0 {
			c.windowUpdate(st.id, st.recvOwed)
			st.allow(st.recvOwed)
			st.recvOwed = 0
		}
	})
}
