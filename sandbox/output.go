package sandbox

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// output copies the output of a sandbox to its caller.
type output struct {
	writing atomic.Int32 // the caller holds us up
	moved   atomic.Int64 // bytes so far
	refused atomic.Bool  // the caller's stream takes no more
	ended   chan error
}

func startOutput(b box, from *engine.Stream) *output {
	o := &output{ended: make(chan error, 1)}
	go func() {
		o.ended <- from.CopyTo(watchedWriter{o, b.Stdout}, watchedWriter{o, b.Stderr})
		from.Discard()
	}()
	return o
}

// watchedWriter is a stream of the caller's whose progress is recorded.
type watchedWriter struct {
	o *output
	w io.Writer
}

func (w watchedWriter) Write(p []byte) (int, error) {
	w.o.writing.Add(1)
	defer w.o.writing.Add(-1)
	n, err := w.w.Write(p)
	w.o.moved.Add(int64(n))
	if err != nil {
		w.o.refused.Store(true)
	}
	return n, err
}

// quietTime is how long the stream of a sandbox that has ended may be silent
// before it counts as ended too.
const quietTime = 5 * time.Second

// drain waits until all output of a sandbox that has ended has been passed on,
// however slowly the caller takes it; only an engine that never ends its stream
// is not waited for.
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
