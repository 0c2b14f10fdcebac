package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const largeMiB = 128 // to see whether memory grows with a body

// mover moves bodies of mib MiB on a connection.
type mover func(c *conn) func(mib int) error

// apiShapes are the kinds of body that J moves: a code host's list of pull requests, a registry's document of a
// package, and a page of a chat's history.
var apiShapes = []string{"pulls", "packument", "chat"}

// downloads returns a mover of bodies of these kinds, in turn, from the origin.
func downloads(kinds ...string) mover {
	return func(c *conn) func(mib int) error {
		buf, next := make([]byte, 64<<10), 0
		return func(mib int) error {
			kind := kinds[next%len(kinds)]
			next++
			return c.download(request("GET", apiHost, "/v1/blob/"+kind+"/"+strconv.Itoa(mib)), chunks()[kind],
				int64(mib)<<20, buf)
		}
	}
}

// uploads returns a mover of bodies of a kind to the origin, which compares them.
func uploads(kind string) mover {
	chunk := chunks()[kind]
	return func(c *conn) func(mib int) error {
		return func(mib int) error {
			return c.upload(request("POST", apiHost, "/v1/upload/"+kind, "Content-Type: application/octet-stream",
				fmt.Sprintf("Content-Length: %d", mib<<20)), chunk, int64(mib)<<20)
		}
	}
}

// bodies moves bodies of so many MiB, one after the other on one connection.
func bodies(move mover, mib int) func(context.Context, *subject, turn) (figures, error) {
	return func(ctx context.Context, s *subject, t turn) (figures, error) {
		c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		one := move(c)
		if err := one(1); err != nil {
			return nil, err
		}
		if !s.direct() {
			if err := resetPeak(s.pid); err != nil {
				return nil, err
			}
		}
		var moved int
		cpu, wall, err := s.spent(func() error {
			for until := time.Now().Add(t.length); moved == 0 || time.Now().Before(until); moved += mib {
				if err := one(mib); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		f := figures{speed: float64(moved) / wall.Seconds()}
		if s.direct() {
			return f, nil
		}
		f[cpuPerGiB] = cpu.Seconds() / float64(moved) * 1024
		if !t.last {
			return f, nil
		}
		return f, s.grows(f, one, t.many(largeMiB))
	}
}

// grows adds the memory that bodies take, and how much more a large one of so many MiB takes.
func (s *subject) grows(f figures, move func(mib int) error, mib int) error {
	_, before, err := memory(s.pid)
	f[peak] = float64(before) / (1 << 20)
	if err != nil || s.name == "mitmproxy" { // which buffers a body whole, for a minute at this length
		return err
	}
	if err := errors.Join(resetPeak(s.pid), move(mib)); err != nil {
		return err
	}
	_, after, err := memory(s.pid)
	f[growth] = float64(max(after-before, 0)) / (1 << 20)
	return err
}

func checkBodies(move mover) func(context.Context, *subject) error {
	return func(ctx context.Context, s *subject) error {
		c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		one := move(c)
		return errors.Join(one(3), one(1)) // the connection must stay usable
	}
}

// checkDownloads also asks for a body of each kind with the secret in it, which aileron has to redact and all others
// have to leave alone.
func checkDownloads(kinds ...string) func(context.Context, *subject) error {
	return func(ctx context.Context, s *subject) error {
		c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		for _, kind := range kinds {
			if err := checkBodies(downloads(kind))(ctx, s); err != nil {
				return err
			}
			want, redacted := leaking(chunks()[kind])
			if s.name == "aileron" {
				want = redacted
			}
			err := c.download(request("GET", apiHost, "/v1/leak/"+kind), want, int64(len(want)), make([]byte, 64<<10))
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		return nil
	}
}
