package sandbox

import (
	"bufio"
	"io"
	"sync/atomic"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
)

// output carries what a box says to its caller.
type output struct {
	b       Box
	writing atomic.Int32 // the caller holds us up
	moved   atomic.Int64 // bytes so far
	refused atomic.Bool  // the caller's stream takes no more
	ended   chan error
}

func startOutput(b Box, from *bufio.Reader) *output {
	o := &output{b: b, ended: make(chan error, 1)}
	go func() {
		var err error
		if b.TTY {
			_, err = io.Copy(watched{o, b.Stdout}, from)
		} else {
			_, err = stdcopy.StdCopy(watched{o, b.Stdout}, watched{o, b.Stderr}, from)
		}
		o.ended <- err
		// An engine whose stream is not read does not see a box's end.
		_, _ = io.Copy(io.Discard, from)
	}()
	return o
}

// watched is a stream of the caller's, seen at work.
type watched struct {
	o *output
	w io.Writer
}

func (w watched) Write(p []byte) (int, error) {
	w.o.writing.Add(1)
	defer w.o.writing.Add(-1)
	n, err := w.w.Write(p)
	w.o.moved.Add(int64(n))
	if err != nil {
		w.o.refused.Store(true)
	}
	return n, err
}

// quietTime is how long an ended box's stream may say nothing before it
// counts as ended too.
const quietTime = 5 * time.Second

// drain waits until all that an ended box said has been passed on, however
// slowly the caller takes it; only an engine that never ends its stream is
// not waited for.
func (o *output) drain(giveUp <-chan struct{}) {
	tick := time.NewTicker(quietTime)
	defer tick.Stop()
	moved := int64(-1)
	for {
		select {
		case <-o.ended:
			return
		case <-giveUp:
			return
		case <-tick.C:
			now := o.moved.Load()
			if now == moved && o.writing.Load() == 0 {
				return
			}
			moved = now
		}
	}
}
