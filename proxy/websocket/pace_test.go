package websocket

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// trickle writes what is said, some bytes each second, and returns when the other side has closed or all is written.
func trickle(conn net.Conn, said []byte, perSecond int) (written int) {
	for written < len(said) {
		n, err := conn.Write(said[written:min(written+perSecond, len(said))])
		if written += n; err != nil {
			return written
		}
		<-time.After(time.Second)
	}
	return written
}

func TestAFrameThatHasBegunComesAtAPace(t *testing.T) {
	const pace = 30 * time.Second
	text, ping := frame(true, opText, true, strings.Repeat("grün ", 800)), frame(true, opPing, true, "are you there?")
	for name, c := range map[string]struct {
		said      []byte
		perSecond int
		ends      time.Duration // 0: never
	}{
		"a byte a second of a text":         {text, 1, pace},
		"33 bytes a second: below the rate": {text, 33, pace},
		"40 bytes a second: above the rate": {text, 40, 0},
		"a byte a second of a head":         {text[:40], 1, pace},
		"a short frame that ends in time":   {ping, 1, 0},
		"a piece of a message":              {frame(false, opBinary, true, strings.Repeat("x", 2000)), 1, pace},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, box := net.Pipe()
			upstream, origin := net.Pipe()
			r := Relay{Client: box, Upstream: upstream, Pace: pace}
			var err error
			over := make(chan struct{})
			began := time.Now()
			go func() { defer close(over); err = r.Run() }()
			go func() { _, _ = io.Copy(io.Discard, origin) }()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			<-time.After(time.Hour) // a client may be silent between frames
			written := trickle(client, c.said, c.perSecond)
			took := time.Since(began) - time.Hour
			_, _ = client.Close(), origin.Close()
			<-over
			ended, late := errors.Is(err, ErrSlow), took < c.ends || took > c.ends+2*time.Second
			if ended != (c.ends > 0) || ended && late {
				t.Errorf("%s: %v after %v and %d of %d bytes", name, err, took, written, len(c.said))
			}
		})
	}
}

// What the upstream does not take is no delay of the client's.
func TestAnUpstreamThatWaitsIsNoSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, box := net.Pipe()
		upstream, origin := net.Pipe()
		r := Relay{Client: box, Upstream: upstream, Pace: 30 * time.Second}
		over := make(chan error)
		go func() { over <- r.Run() }()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		go func() {
			for buf := make([]byte, 600); ; <-time.After(time.Minute) {
				if _, err := io.ReadFull(origin, buf); err != nil {
					return
				}
			}
		}()
		_ = must.Get(client.Write(frame(true, opBinary, true, strings.Repeat("x", 20<<10))))(t)
		_, _ = client.Close(), origin.Close()
		if err := <-over; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}
