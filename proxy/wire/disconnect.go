package wire

import (
	"io"
	"net/netip"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
)

// How often a client that has ended its outbound half is looked for.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// patience is how long an exchange runs before its client is watched. Most
// are over by then, and two changes of goroutines cheaper.
const patience = 20 * time.Millisecond

// settle waits for the background read, if there is one.
func (s *source) settle() error {
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

// watch reads ahead, after some patience, until something comes, and calls
// gone when that is the end of the connection.
func (s *source) watch(gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching != nil || s.w > s.r {
		return
	}
	s.gone, s.watched = gone, true
	if s.timer == nil {
		s.timer = time.AfterFunc(patience, s.readAhead)
		return
	}
	s.timer.Reset(patience)
}

// readAhead is the background read, if there is still something to watch: the
// timer of an exchange that is over may have begun that of the next.
func (s *source) readAhead() {
	s.mu.Lock()
	gone := s.gone
	if gone != nil && s.half {
		s.look(gone)
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
	if err == io.EOF && s.keepLooking(gone) {
		return
	}
	gone()
}

// keepLooking begins to look for a client that has ended its outbound half,
// unless it is known to be gone already.
func (s *source) keepLooking(gone func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.watched { // the exchange is over
		return true
	}
	if peer.Gone(s.conn, netip.AddrPort{}) {
		return false
	}
	s.gone, s.half, s.pause = gone, true, firstLook
	s.timer.Reset(s.pause)
	return true
}

// look looks once for a client that has ended its outbound half. It releases
// s.mu.
func (s *source) look(gone func()) {
	left := peer.Gone(s.conn, netip.AddrPort{})
	if left {
		s.gone = nil
	} else {
		s.pause = min(2*s.pause, lastLook)
		s.timer.Reset(s.pause)
	}
	s.mu.Unlock()
	if left {
		gone()
	}
}

// close stops the timer and waits for the background read, whose connection
// is closed.
func (s *source) close() {
	_ = s.settle()
	if s.timer != nil {
		s.timer.Stop()
	}
}
