package output

import (
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fullStream is a stream that takes half of what it gets, and fails.
type fullStream struct{}

func (fullStream) Write(p []byte) (int, error) { return len(p) / 2, fs.ErrClosed }

// A caller's stream that takes no more ends the copy with its own error.
func TestAStreamThatRefusesIsNoted(t *testing.T) {
	o := New()
	n, err := o.Writer(fullStream{}).Write([]byte("output"))
	if n != 3 || err != fs.ErrClosed {
		t.Errorf("Write = %d, %v; want 3, %v", n, err, fs.ErrClosed)
	}
	if o.Moved() != 3 || !o.Refused() || o.Writing() {
		t.Errorf("moved %d, refused %t, writing %t", o.Moved(), o.Refused(), o.Writing())
	}
}

// pending is a caller's stream whose writes end when it is closed.
type pending chan struct{}

func (p pending) Write(b []byte) (int, error) {
	<-p
	return len(b), nil
}

// The caller's streams are its own again after the end: a write in progress is waited for, and none begins. Only a
// caller that has given up is not waited for any longer than lastTime.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	for _, c := range []struct {
		name              string
		giveUp            <-chan struct{}
		writeTakes, waits time.Duration
	}{
		{"a slow caller", nil, time.Hour, time.Hour},
		{"one that has given up", GivenUp(), lastTime / 2, lastTime / 2},
		{"one that takes nothing, and has given up", GivenUp(), time.Hour, lastTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, slow := New(), make(pending)
			go func() {
				_, err := o.Writer(slow).Write([]byte("output"))
				o.End(err)
			}()
			synctest.Wait()
			time.AfterFunc(c.writeTakes, func() { close(slow) })
			before := time.Now()
			o.Stop(c.giveUp)
			if took := time.Since(before); took != c.waits {
				t.Errorf("%s: the end took %v, want %v", c.name, took, c.waits)
			}
			var after strings.Builder
			if _, err := o.Writer(&after).Write([]byte("more")); err == nil || after.Len() > 0 {
				t.Errorf("%s: %q was written after the end, %v", c.name, after.String(), err)
			}
			<-slow
		})
	}
}
