// Package output passes the output of a sandbox on to its caller, and knows when it may stop.
//
//	o := output.New()
//	go func() { o.End(from.CopyTo(o.Writer(stdout), o.Writer(stderr))) }()
//	...
//	o.Drain(ctx.Done()) // the sandbox has ended
//	o.Stop(ctx.Done())  // stdout and stderr are the caller's own again
package output

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// Output is the copy of a sandbox's output to its caller.
type Output struct {
	// Ended gets the error of the copy when all output has been passed on, once.
	Ended chan error

	writing atomic.Int32 // the caller holds us up
	moved   atomic.Int64
	refused atomic.Bool
	stopped atomic.Bool   // no write may begin
	copied  chan struct{} // closed when no write is left
}

// New returns an Output whose copy has not ended.
func New() *Output { return &Output{Ended: make(chan error, 1), copied: make(chan struct{})} }

// End records that all output has been copied, or err.
func (o *Output) End(err error) {
	close(o.copied)
	o.Ended <- err
}

// Moved returns how many bytes the caller has taken.
func (o *Output) Moved() int64 { return o.moved.Load() }

// Writing reports whether a write to the caller is in progress.
func (o *Output) Writing() bool { return o.writing.Load() != 0 }

// Refused reports whether a stream of the caller takes no more.
func (o *Output) Refused() bool { return o.refused.Load() }

// lastTime bounds the wait for output when it has been given up.
const lastTime = time.Second

// Wait waits until no write to the caller is left; once giveUp is closed, for a second at most.
func (o *Output) Wait(giveUp <-chan struct{}) {
	select {
	case <-o.copied:
		return
	case <-giveUp:
	}
	select {
	case <-o.copied:
	case <-time.After(lastTime):
	}
}

// Stop keeps the copy, whose source is closed, from writing more to the caller, and waits as Wait does. The caller's
// streams are its own again then.
func (o *Output) Stop(giveUp <-chan struct{}) {
	o.stopped.Store(true)
	o.Wait(giveUp)
}

// GivenUp is closed.
func GivenUp() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// QuietTime is how long the stream of a sandbox that has ended may be silent
// before it counts as ended too.
const QuietTime = 5 * time.Second

// Drain waits until all output of a sandbox that has ended has been passed on,
// however slowly the caller takes it; only an engine that never ends its stream
// is not waited for.
func (o *Output) Drain(giveUp <-chan struct{}) {
	tick := time.NewTicker(QuietTime)
	defer tick.Stop()
	moved := int64(-1)
	for {
		select {
		case <-o.Ended:
			return
		case <-giveUp:
			return
		case <-tick.C:
			now := o.moved.Load()
			if now == moved && !o.Writing() {
				return
			}
			moved = now
		}
	}
}

// Writer returns w as a stream whose progress is recorded.
func (o *Output) Writer(w io.Writer) io.Writer { return watched{o, w} }

type watched struct {
	o *Output
	w io.Writer
}

// errStopped is returned to a copy that goes on after its end.
var errStopped = errors.New("the sandbox has ended")

func (w watched) Write(p []byte) (int, error) {
	w.o.writing.Add(1)
	defer w.o.writing.Add(-1)
	if w.o.stopped.Load() {
		return 0, errStopped
	}
	n, err := w.w.Write(p)
	w.o.moved.Add(int64(n))
	if err != nil {
		w.o.refused.Store(true)
	}
	return n, err
}
