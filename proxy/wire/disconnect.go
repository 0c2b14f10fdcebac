package wire

import (
	"io"
	"net/netip"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
)

// How often a client that has half-closed its connection is polled.
const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = time.Second
)

// watchDelay is how long an exchange lasts before the background read begins. Most
// are over by then, which saves two goroutine switches.
const watchDelay = 20 * time.Millisecond

// waitRead waits for the background read, if there is one, and returns its error.
func (s *connReader) waitRead() error {
	s.mu.Lock()
	s.gone, s.watched = nil, false
	watching := s.watching
	s.mu.Unlock()
	if watching == nil {
		return nil
	}
	<-watching
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = nil
	return s.watchErr
}

// detectDisconnect starts a background read after watchDelay, and calls gone if
// that read ends with the connection.
func (s *connReader) detectDisconnect(gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching != nil || s.w > s.r {
		return
	}
	s.gone, s.watched = gone, true
	if s.timer == nil {
		s.timer = time.AfterFunc(watchDelay, s.readAhead)
		return
	}
	s.timer.Reset(watchDelay)
}

// readAhead performs the background read, if there is still an exchange to
// cancel: the timer of a finished exchange may have started that of the next.
func (s *connReader) readAhead() {
	s.mu.Lock()
	gone := s.gone
	if gone != nil && s.half {
		s.poll(gone)
		return
	}
	if gone == nil || s.watching != nil {
		s.mu.Unlock()
		return
	}
	done := make(chan struct{})
	s.gone, s.watching, s.watchErr = nil, done, nil
	s.mu.Unlock()
	defer close(done)
	err := s.fill()
	if err == nil {
		return
	}
	s.watchErr = err // read after done
	if err == io.EOF && s.startPolling(gone) {
		return
	}
	gone()
}

// startPolling starts to poll a client that has half-closed its connection, and
// reports false if that client has already disconnected.
func (s *connReader) startPolling(gone func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.watched { // the exchange is over
		return true
	}
	if peer.Gone(s.conn, netip.AddrPort{}) {
		return false
	}
	s.gone, s.half, s.pause = gone, true, firstPoll
	s.timer.Reset(s.pause)
	return true
}

// poll polls a client that has half-closed its connection once. It releases s.mu.
func (s *connReader) poll(gone func()) {
	left := peer.Gone(s.conn, netip.AddrPort{})
	if left {
		s.gone = nil
	} else {
		s.pause = min(2*s.pause, lastPoll)
		s.timer.Reset(s.pause)
	}
	s.mu.Unlock()
	if left {
		gone()
	}
}

// close stops the timer and waits for the background read. The connection is
// already closed.
func (s *connReader) close() {
	_ = s.waitRead()
	if s.timer != nil {
		s.timer.Stop()
	}
}
