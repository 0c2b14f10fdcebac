package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// once opens a tunnel for one request, and closes it.
func (s *subject) once(ctx context.Context, host string, tickets tls.ClientSessionCache) (resumed bool, err error) {
	c, err := s.open(ctx, host+":443", "http/1.1", tickets)
	if err != nil {
		return false, err
	}
	defer c.Close()
	return c.ConnectionState().DidResume, c.item(request("GET", host, "/v1/items"))
}

const tunnelWorkers = 4

// sameHost opens a tunnel for each request, as a shell script with curl does:
// its clients know no session to resume.
func sameHost(ctx context.Context, s *subject, t turn) (figures, error) {
	w := repeat(func() error { _, err := s.once(ctx, apiHost, nil); return err })
	return drive(s, t, slices.Repeat([]worker{w}, tunnelWorkers))
}

// newHost opens a tunnel for each request, to a host that this subject has
// never seen.
func newHost(ctx context.Context, s *subject, t turn) (figures, error) {
	w := repeat(func() error {
		i := s.hosts.Add(1) - 1
		if i >= manyHosts {
			return fmt.Errorf("all %d names are used up: fewer or shorter turns", manyHosts)
		}
		_, err := s.once(ctx, manyHost(int(i)), nil)
		return err
	})
	return drive(s, t, slices.Repeat([]worker{w}, tunnelWorkers))
}

func checkNewHost(ctx context.Context, s *subject) error {
	_, err := s.once(ctx, manyHost(int(s.hosts.Add(1)-1)), nil)
	return err
}

// resumption is the share of tunnels whose client could resume.
func resumption(ctx context.Context, s *subject, t turn) (figures, error) {
	n := t.many(100)
	tickets := tls.NewLRUClientSessionCache(8)
	if _, err := s.once(ctx, apiHost, tickets); err != nil {
		return nil, err
	}
	var did int
	for range n {
		again, err := s.once(ctx, apiHost, tickets)
		if err != nil {
			return nil, err
		}
		if again {
			did++
		}
	}
	return figures{resumed: 100 * float64(did) / float64(n)}, nil
}

// idle is the memory of a tunnel that has carried a request and waits for
// the next. Its subject must be fresh: a used heap has room for many.
func idle(ctx context.Context, s *subject, t turn) (figures, error) {
	if s.direct() {
		return figures{}, nil
	}
	n := 1000 // aileron's own cap is 1024; of fewer, what is allocated once would be too large a part
	if t.share > 3 {
		n = t.many(n)
	}
	for range 20 {
		if _, err := s.once(ctx, apiHost, nil); err != nil {
			return nil, err
		}
	}
	if err := settle(ctx, memorySettles); err != nil {
		return nil, err
	}
	before, _, err := memory(s.pid)
	if err != nil {
		return nil, err
	}
	open, err := s.openMany(ctx, n, nil)
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, memorySettles); err != nil {
		return nil, err
	}
	after, _, err := memory(s.pid)
	if err != nil {
		return nil, err
	}
	if t.rest != nil {
		if err := t.rest(); err != nil {
			return nil, err
		}
	}
	for _, c := range []*conn{open[0], open[n-1]} {
		if err := c.item(getItems); err != nil {
			return nil, fmt.Errorf("a tunnel did not stay open: %w", err)
		}
	}
	return figures{perTunnel: float64(after-before) / float64(n) / 1024}, nil
}

// memorySettles is how long what aileron does after a request may take, before its memory is measured.
const memorySettles = 300 * time.Millisecond

// settle waits until what follows a request, or a sandbox, is done.
func settle(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// openMany opens n tunnels and sends one request through each.
func (s *subject) openMany(ctx context.Context, n int, tickets tls.ClientSessionCache) ([]*conn, error) {
	var mu sync.Mutex
	var open []*conn
	var failed error
	var left atomic.Int64
	left.Store(int64(n))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				c, err := s.open(ctx, apiHost+":443", "http/1.1", tickets)
				if err == nil {
					err = c.item(getItems)
				}
				mu.Lock()
				if c != nil {
					open = append(open, c)
				}
				if failed == nil {
					failed = err
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	group.Wait()
	return open, failed
}

// expecting is how long a client waits for 100 Continue before it sends its
// body all the same, as curl does.
const expecting = time.Second

// expectation is how long a client that asks waits for 100 Continue.
func expectation(ctx context.Context, s *subject, t turn) (figures, error) {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var waits []time.Duration
	for range t.many(10) {
		waited, err := c.uploadExpecting(item)
		if err != nil {
			return nil, err
		}
		if waits = append(waits, waited); waited > expecting/2 {
			break
		}
	}
	slices.Sort(waits)
	return figures{wait: micros(percentile(waits, 50)) / 1e3}, nil
}

// uploadExpecting sends a body after 100 Continue, or after expecting.
func (c *conn) uploadExpecting(body []byte) (time.Duration, error) {
	began := time.Now()
	if err := c.send(request("POST", apiHost, "/v1/upload/item", fmt.Sprintf("Content-Length: %d", len(body)),
		"Expect: 100-continue")); err != nil {
		return 0, err
	}
	_ = c.SetReadDeadline(began.Add(expecting))
	_, err := c.r.Peek(1)
	late := errors.Is(err, os.ErrDeadlineExceeded)
	waited := time.Since(began)
	_ = c.SetReadDeadline(began.Add(stuck))
	switch {
	case err == nil:
		res, err := http.ReadResponse(c.r, nil)
		if err != nil {
			return 0, err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusContinue {
			return 0, fmt.Errorf("%s answered %s to an expectation", c.s.name, res.Status)
		}
	case !late:
		return 0, err
	}
	if _, err := c.Write(body); err != nil {
		return 0, err
	}
	if late { // perhaps, and not never
		const line = "HTTP/1.1 100"
		if head, err := c.r.Peek(len(line)); err == nil && string(head) == line {
			if _, err := http.ReadResponse(c.r, nil); err != nil { //nolint:bodyclose // it has none
				return 0, err
			}
		}
	}
	return waited, c.uploaded(int64(len(body)))
}

func checkExpectation(ctx context.Context, s *subject) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.uploadExpecting(item)
	return err
}
