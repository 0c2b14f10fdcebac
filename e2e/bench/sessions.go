package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sessionsAtOnce is how many sessions share one home, and its audit log.
const sessionsAtOnce = 20

const (
	tailOfOne    = "p99 µs, 1 session"
	medianOfMany = "p50 µs, 20 sessions"
	tailOfMany   = "p99 µs, 20 sessions"
	tailGrowth   = "p99 growth ×"
	leastShare   = "least share of the largest"
)

// sideBySide compares twenty clients of one session with twenty sessions of one client each, all on one home: the
// machine does the same work, but the audit log has twenty writers.
func sideBySide(ctx context.Context, s *subject, t turn) (figures, error) {
	n := t.many(sessionsAtOnce)
	alone := slices.Repeat([]*subject{s}, n)
	one, err := clients(ctx, alone, t)
	if err != nil {
		return nil, err
	}
	sessions := []*subject{s}
	defer func() {
		var ends sync.WaitGroup
		for _, other := range sessions[1:] {
			s.sent.Add(other.sent.Load())
			ends.Go(other.stop)
		}
		ends.Wait()
	}()
	for len(sessions) < n {
		other, err := s.another(ctx, false)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, other)
	}
	many, err := clients(ctx, sessions, t)
	if err != nil {
		return nil, err
	}
	least, most := len(many[0]), 0
	for _, took := range many {
		least, most = min(least, len(took)), max(most, len(took))
	}
	before, after := sorted(one), sorted(many)
	return figures{
		tailOfOne:    micros(percentile(before, 99)),
		medianOfMany: micros(percentile(after, 50)),
		tailOfMany:   micros(percentile(after, 99)),
		tailGrowth:   float64(percentile(after, 99)) / float64(percentile(before, 99)),
		leastShare:   float64(least) / float64(most),
	}, nil
}

// clients sends small requests to each of the subjects at the same time, from one client each, and returns how long
// each client's requests took.
func clients(ctx context.Context, subjects []*subject, t turn) ([][]time.Duration, error) {
	all, errs := make([][]time.Duration, len(subjects)), make([]error, len(subjects))
	conns := make([]*conn, len(subjects))
	for i, s := range subjects {
		c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := c.item(getItems); err != nil {
			return nil, err
		}
		conns[i] = c
	}
	until := time.Now().Add(t.length)
	var group sync.WaitGroup
	for i, c := range conns {
		group.Go(func() { all[i], errs[i] = repeat(func() error { return c.item(getItems) })(until) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sorted(all [][]time.Duration) []time.Duration {
	took := slices.Concat(all...)
	slices.Sort(took)
	return took
}
