package upstream

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What comes for an attempt that is over belongs to the next one.
func TestABodyIsNeverReadByTwoAttempts(t *testing.T) {
	in, out := io.Pipe()
	b := NewBody(in)
	first, second := b.newAttempt(time.Minute, func() {}), b.newAttempt(time.Minute, func() {})
	ended := make(chan error)
	go func() {
		_, err := first.Read(make([]byte, 16))
		ended <- err
	}()
	go func() {
		_ = first.Close()
		_, _ = io.WriteString(out, "the body")
		_ = out.Close()
	}()
	got, err := io.ReadAll(second)
	if err != nil || string(got) != "the body" || b.n.Load() != 8 {
		t.Errorf("the second attempt reads %q, %v, of %d", got, err, b.n.Load())
	}
	if err := <-ended; err != errAttemptClosed {
		t.Errorf("the first attempt's read ends with %v", err)
	}
}

// A sandbox decides how many bodies there are: what is kept of all of them is bounded, and given back.
func TestWhatIsKeptOfAllBodiesIsBounded(t *testing.T) {
	var room atomic.Int64
	var bodies []*Body
	again := 0
	for range 2 * maxKeptOfAll / maxKept {
		b := NewBody(io.NopCloser(strings.NewReader(strings.Repeat("x", maxKept))))
		b.keep(&room)
		if _, err := io.Copy(io.Discard, b.newAttempt(time.Hour, func() {})); err != nil {
			t.Fatal(err)
		}
		if bodies = append(bodies, b); room.Load() > maxKeptOfAll {
			t.Fatalf("%d bytes are kept", room.Load())
		}
	}
	for _, b := range bodies {
		if b.rewind() {
			again++
		}
		b.drop()
	}
	if again != maxKeptOfAll/maxKept || room.Load() != 0 {
		t.Errorf("%d bodies can be sent again, want %d; %d bytes are left", again, maxKeptOfAll/maxKept, room.Load())
	}
}
