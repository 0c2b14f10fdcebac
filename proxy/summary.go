package proxy

import (
	"slices"
	"sync"
	"time"
)

// summary collects events that get no audit row of their own: one row for all of
// them is recorded when summaryPeriod has passed since the first. The zero value
// has collected nothing.
type summary[T any] struct {
	recording sync.Mutex // held while a row is recorded, which waits for the audit log

	mu    sync.Mutex
	timer *time.Timer // records the row; nil: nothing has been collected
	value T
}

const (
	summaryPeriod   = time.Second
	maxSummaryHosts = 8 // hosts named in a row
)

// add calls collect with what has been collected. After the first event of a
// period, flush is called when the period is over.
func (s *summary[T]) add(flush func(), collect func(value *T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(summaryPeriod, flush)
	}
	collect(&s.value)
}

// flush calls record with what has been collected, if anything has. Events that
// come meanwhile are collected anew, and do not wait.
func (s *summary[T]) flush(record func(T)) {
	s.recording.Lock()
	defer s.recording.Unlock()
	if value, ok := s.take(); ok {
		record(value)
	}
}

// take returns what has been collected, and begins anew.
func (s *summary[T]) take() (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return value, false
	}
	s.timer.Stop()
	value, s.value = s.value, value
	s.timer = nil
	return value, true
}

// someHosts is the first few hosts of a summary.
type someHosts []string

func (h *someHosts) add(host string) {
	if host != "" && len(*h) <= maxSummaryHosts && !slices.Contains(*h, host) {
		*h = append(*h, host)
	}
}

// only returns the host, if there is but one.
func (h someHosts) only() string {
	if len(h) == 1 {
		return h[0]
	}
	return ""
}

// listed returns the hosts that a row names.
func (h someHosts) listed() []string { return h[:min(len(h), maxSummaryHosts)] }
