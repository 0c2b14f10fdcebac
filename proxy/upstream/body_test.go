package upstream

import (
	"io"
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
