package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

const (
	bodyMiB  = 10
	largeMiB = 128 // to see whether memory grows with a body
)

// uploadBody is what uploads repeat, a MiB of JSON.
var uploadBody = blobs()["json"]

func downloads(c *conn) func(mib int) error {
	buf := make([]byte, 64<<10)
	return func(mib int) error {
		return c.download(request("GET", apiHost, "/v1/blob/json/"+strconv.Itoa(mib)), int64(mib)<<20, buf)
	}
}

func uploads(c *conn) func(mib int) error {
	return func(mib int) error {
		return c.upload(request("POST", apiHost, "/v1/upload", "Content-Type: application/json",
			fmt.Sprintf("Content-Length: %d", mib<<20)), uploadBody, mib)
	}
}

// bodies moves bodies of 10 MiB one after the other on one connection. move
// makes what moves one.
func bodies(move func(*conn) func(mib int) error) func(context.Context, *subject, turn) (figures, error) {
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
			for until := time.Now().Add(t.length); moved == 0 || time.Now().Before(until); moved += bodyMiB {
				if err := one(bodyMiB); err != nil {
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

// grows adds the memory that bodies take, and what a large one of so many MiB takes more.
func (s *subject) grows(f figures, move func(mib int) error, mib int) error {
	_, before, err := memory(s.pid)
	if err != nil {
		return err
	}
	if err := errors.Join(resetPeak(s.pid), move(mib)); err != nil {
		return err
	}
	_, after, err := memory(s.pid)
	f[peak], f[growth] = float64(before)/(1<<20), float64(max(after-before, 0))/(1<<20)
	return err
}

func checkBodies(move func(*conn) func(mib int) error) func(context.Context, *subject) error {
	return func(ctx context.Context, s *subject) error {
		c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		one := move(c)
		return errors.Join(one(2), one(1)) // the connection must stay usable
	}
}

const (
	streamEvents = 25
	eventGap     = 2 * time.Millisecond
)

// streams reads streams of server-sent events, and how old each event is when
// it is there.
func streams(ctx context.Context, s *subject, t turn) (figures, error) {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.item(getItems); err != nil {
		return nil, err
	}
	var firsts, ages []time.Duration
	cpu, _, err := s.spent(func() error {
		for until := time.Now().Add(t.length); len(firsts) == 0 || time.Now().Before(until); {
			first, age, err := c.stream(streamEvents)
			if err != nil {
				return err
			}
			firsts, ages = append(firsts, first), append(ages, age...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(firsts)
	slices.Sort(ages)
	f := figures{firstEvent: micros(percentile(firsts, 50)), perEvent: micros(percentile(ages, 50))}
	if !s.direct() {
		f[cpuPerEvents] = float64(cpu.Microseconds()) / float64(len(ages))
	}
	return f, nil
}

// stream reads n events: how long the first took from the request, and how
// old each was.
func (c *conn) stream(n int) (first time.Duration, ages []time.Duration, err error) {
	began := time.Now()
	if err := c.send(request("GET", apiHost, fmt.Sprintf("/v1/events/%d/%v", n, eventGap),
		"Accept: text/event-stream")); err != nil {
		return 0, nil, err
	}
	body, err := c.answer()
	if err != nil {
		return 0, nil, err
	}
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		now := time.Now()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		data, ok := bytes.CutPrefix(line, []byte(`data: {"sent":`))
		if !ok {
			continue
		}
		digits, _, _ := bytes.Cut(data, []byte(","))
		sent, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			return 0, nil, err
		}
		if ages = append(ages, time.Duration(now.UnixNano()-sent)); first == 0 {
			first = now.Sub(began)
		}
	}
	if len(ages) != n {
		return 0, nil, fmt.Errorf("%s gave %d events of %d", c.s.name, len(ages), n)
	}
	return first, ages, nil
}

func checkStreams(ctx context.Context, s *subject) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, _, err := c.stream(5); err != nil {
		return err
	}
	return c.item(getItems)
}
