package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// worker makes one request after the other until its deadline, and keeps how
// long each took.
type worker func(until time.Time) ([]time.Duration, error)

// drive runs workers beside each other for one turn.
func drive(s *subject, t turn, workers []worker) (figures, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	cpu, wall, err := s.spent(func() error {
		until := time.Now().Add(t.length)
		var group sync.WaitGroup
		for _, w := range workers {
			group.Go(func() {
				took, err := w(until)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, took...)
				if failed == nil {
					failed = err
				}
			})
		}
		group.Wait()
		return failed
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	f := figures{
		rate:   float64(len(all)) / wall.Seconds(),
		median: micros(percentile(all, 50)),
		tail:   micros(percentile(all, 99)),
	}
	if !s.direct() {
		f[cpuPer1000] = float64(cpu.Microseconds()) / float64(len(all))
	}
	return f, nil
}

// repeat is a worker that does f over and over, once at least.
func repeat(f func() error) worker {
	return func(until time.Time) ([]time.Duration, error) {
		took := make([]time.Duration, 0, 1<<14)
		for {
			began := time.Now()
			if err := f(); err != nil {
				return took, err
			}
			now := time.Now()
			took = append(took, now.Sub(began))
			if now.After(until) {
				return took, nil
			}
		}
	}
}

// small asks for the small answer over and over on n connections that stay.
func small(n int) func(context.Context, *subject, turn) (figures, error) {
	return func(ctx context.Context, s *subject, t turn) (figures, error) {
		workers, end, err := s.smallAt(ctx, apiHost, n)
		defer end()
		if err != nil {
			return nil, err
		}
		return drive(s, t, workers)
	}
}

// smallAt returns workers that ask a host for the small answer, each on a connection that stays until end is called.
func (s *subject) smallAt(ctx context.Context, host string, n int) (workers []worker, end func(), err error) {
	var open []*conn
	end = func() {
		for _, c := range open {
			c.Close()
		}
	}
	get := request("GET", host, "/v1/items")
	for range n {
		c, err := s.open(ctx, host+":443", "http/1.1", nil)
		if err != nil {
			return nil, end, err
		}
		open = append(open, c)
		for range 5 { // pools and caches fill outside of the measure
			if err := c.item(get); err != nil {
				return nil, end, err
			}
		}
		workers = append(workers, repeat(func() error { return c.item(get) }))
	}
	return workers, end, nil
}

func checkSmall(ctx context.Context, s *subject) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.wholeItem(getItems)
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*p/100]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
