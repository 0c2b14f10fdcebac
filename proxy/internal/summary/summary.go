// Package summary collects events that get no audit row of their own, because a client can make too many of them:
// [Summary] records one row for all of a second.
package summary

import (
	"slices"
	"sync"
	"time"
)

// Summary collects events until a second has passed since the first. The zero
// value has collected nothing.
type Summary[T any] struct {
	recording sync.Mutex // held while a row is recorded, which waits for the audit log

	mu    sync.Mutex
	timer *time.Timer // records the row; nil: nothing has been collected
	value T
}

const (
	period   = time.Second
	maxHosts = 8 // hosts named in a row
)

// Add calls collect with what has been collected. After the first event of a
// period, flush is called when the period is over.
func (s *Summary[T]) Add(flush func(), collect func(value *T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(period, flush)
	}
	collect(&s.value)
}

// Flush calls record with what has been collected, if anything has. Events that
// come meanwhile are collected anew, and do not wait.
func (s *Summary[T]) Flush(record func(T)) {
	s.recording.Lock()
	defer s.recording.Unlock()
	if value, ok := s.take(); ok {
		record(value)
	}
}

// take returns what has been collected, and begins anew.
func (s *Summary[T]) take() (value T, ok bool) {
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

// Hosts is the first few hosts of a summary.
type Hosts []string

// Add adds a host, unless there are enough.
func (h *Hosts) Add(host string) {
	if host != "" && len(*h) <= maxHosts && !slices.Contains(*h, host) {
		*h = append(*h, host)
	}
}

// Only returns the host, if there is but one.
func (h Hosts) Only() string {
	if len(h) == 1 {
		return h[0]
	}
	return ""
}

// Listed returns the hosts that a row names.
func (h Hosts) Listed() []string { return h[:min(len(h), maxHosts)] }
