package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	besideFew   = "p90 ms beside 8"
	besideMany  = "p90 ms beside 32"
	latestEvent = "latest event ms"
)

// hostile is the kind of a body that is slow to search. It repeats what a hunt of proxy/scrub has found: the beginnings
// of tokens, with escapes of all syntaxes, line ends and dumps between them.
const hostile = "hostile"

var hostileText = strings.Join([]string{"\n", `o`, `67\\x68\\x70\\x5f\\x76\\x44\\x76\\x61\\x74`, `A767\U&#x30;&#x30;`,
	`%25`, `%25u0067%25u00%36%38%25%370%25%75%3005f`,
	`78-\\x6f-\\x78-\\x62-\\x2d-\\x46-\\x56-\\x72-\\x37-\\x6C-\\x41`, `%25`,
	`%78%5c%75%30%30%36%66%78%62%5c%75%30%30%32%44%68%30%5c%75%30%30%34%64%5C%75%30%30%34%61`, `;`, `Z2g=`, `&amp;`,
	`\&#117;&#123;67}\x68`, "=78=\n=6F=\r\n=78=\r\n=62=2D=6F=\n=54=59=\n=56=5A=38"}, "")

// besideHostile measures small requests and a stream of events beside downloads of bodies that are slow to search.
func besideHostile(ctx context.Context, s *subject, t turn) (figures, error) {
	f := figures{}
	for _, at := range []struct {
		bodies int
		name   string
	}{{8, besideFew}, {32, besideMany}} {
		err := s.beside(ctx, at.bodies, func(c *conn) error {
			all, err := repeat(func() error { return c.item(getItems) })(time.Now().Add(t.length))
			slices.Sort(all)
			f[at.name] = micros(percentile(all, 90)) / 1e3
			if err != nil || at.name == besideFew {
				return err
			}
			_, ages, err := c.stream(25, 20*time.Millisecond)
			if err == nil {
				f[latestEvent] = micros(slices.Max(ages)) / 1e3
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// beside calls f with a connection while n other ones download without end.
func (s *subject) beside(ctx context.Context, n int, f func(*conn) error) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	var all sync.WaitGroup
	defer all.Wait()
	begun := make(chan error, n)
	for range n {
		d, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return err
		}
		defer d.Close()
		all.Go(func() {
			err := d.send(request("GET", apiHost, "/v1/blob/"+hostile+"/4096"))
			if err == nil {
				_, err = io.CopyN(io.Discard, d, 64<<10)
			}
			begun <- err
			_, _ = io.Copy(io.Discard, d)
		})
	}
	for range n {
		if err := <-begun; err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("a body that is slow to search, through %s: %w", s.name, err)
		}
	}
	return f(c)
}
