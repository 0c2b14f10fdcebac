package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/e2e/corpus"
)

const (
	streamEvents = 25
	eventGap     = 2 * time.Millisecond
	sentField    = "id: " // of an event: when it was sent, in nanoseconds
)

// deltas returns the events of a stream, without their last empty line.
var deltas = sync.OnceValue(func() [][]byte {
	all := bytes.Split(corpus.ServerSentEvents(1, 64<<10), []byte("\n\n"))
	return all[:len(all)-1] // the last one is cut off
})

// events sends n events, gap apart, each with the moment of its sending.
func events(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	gap, wrong := time.ParseDuration(r.PathValue("gap"))
	if err = errors.Join(err, wrong); err != nil || n > len(deltas()) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	for _, event := range deltas()[:n] {
		fmt.Fprintf(w, "%s%d\n%s\n\n", sentField, time.Now().UnixNano(), event)
		if flush.Flush() != nil {
			return
		}
		select {
		case <-time.After(gap):
		case <-r.Context().Done():
			return
		}
	}
}

// streams reads streams of server-sent events, and how old each event is when it arrives.
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
			first, age, err := c.stream(streamEvents, eventGap)
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

// stream reads n events that are sent with gaps between them, and returns how long the first took from the request, and
// how old each was.
func (c *conn) stream(n int, gap time.Duration) (first time.Duration, ages []time.Duration, err error) {
	began := time.Now()
	if err := c.send(request("GET", apiHost, fmt.Sprintf("/v1/events/%d/%v", n, gap))); err != nil {
		return 0, nil, err
	}
	body, err := c.answer()
	if err != nil {
		return 0, nil, err
	}
	lines := bufio.NewReader(body)
	var text []byte
	for {
		line, err := lines.ReadBytes('\n')
		now := time.Now()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		digits, ok := bytes.CutPrefix(line, []byte(sentField))
		if !ok {
			text = append(text, line...)
			continue
		}
		sent, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 10, 64)
		if err != nil {
			return 0, nil, err
		}
		if ages = append(ages, time.Duration(now.UnixNano()-sent)); first == 0 {
			first = now.Sub(began)
		}
	}
	if want := append(bytes.Join(deltas()[:n], []byte("\n\n")), "\n\n"...); !bytes.Equal(text, want) {
		return 0, nil, fmt.Errorf("%s returned %d events that are not the %d of the origin", c.s.name, len(ages), n)
	}
	return first, ages, nil
}

func checkStreams(ctx context.Context, s *subject) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, _, err := c.stream(5, eventGap); err != nil {
		return err
	}
	return c.item(getItems)
}
