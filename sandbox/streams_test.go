package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/sandbox"
)

// notice is a stream that reports when a word has been written.
type notice struct {
	mu   sync.Mutex
	text strings.Builder
	word string
	once sync.Once
	said chan struct{}
}

func (n *notice) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Write(p)
	if strings.Contains(n.text.String(), n.word) {
		n.once.Do(func() { close(n.said) })
	}
	return len(p), nil
}

func TestSignalsAndCancellationEndASandbox(t *testing.T) {
	t.Parallel()
	const loop = "echo up; while :; do sleep 0.1; done"
	stop := func(cancel func(), _ chan<- os.Signal) { cancel() }
	send := func(signals ...syscall.Signal) func(func(), chan<- os.Signal) {
		return func(_ func(), to chan<- os.Signal) {
			for _, sig := range signals {
				to <- sig
			}
		}
	}
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, c := range map[string]struct {
			command string
			end     func(cancel func(), signals chan<- os.Signal)
			want    int
		}{
			"a handled signal": {"trap 'exit 42' USR1; " + loop, send(syscall.SIGUSR1), 42},
			"a second signal":  {"trap '' TERM; " + loop, send(syscall.SIGTERM, syscall.SIGTERM), 137},
			"a cancelled box":  {"trap 'exit 43' TERM; " + loop, stop, 43},
			"a deaf box":       {"trap '' TERM; " + loop, stop, 137},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				signals := make(chan os.Signal, 2)
				b, _, _ := box(t, idleGateway, "sh", "-c", c.command)
				if c.want != 137 { // on a busy machine its trap may take long
					b.HasTimeToStop(harness.Patience)
				}
				up := &notice{word: "up", said: make(chan struct{})}
				b.Stdout, b.Signals = up, signals
				go func() {
					<-up.said
					c.end(cancel, signals)
				}()
				if code, err := e.Run(ctx, b); code != c.want || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("Run = %d, %v; want %d", code, err, c.want)
				}
			})
		}
	})
}

// closed is a reader's end that went away.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAReaderThatGoesAwayEndsTheSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "yes")
		b.Stdout = closed{}
		if code, err := e.Run(t.Context(), b); code != 128+int(syscall.SIGPIPE) || err != nil {
			t.Errorf("Run = %d, %v; want 141", code, err)
		}
	})
}

// slow takes its time for each piece.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	<-time.After(time.Millisecond)
	return s.Buffer.Write(p)
}

func TestASlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "head", "-c", "2000000", "/dev/zero")
		out := &slow{}
		b.Stdout = out
		if code, err := e.Run(t.Context(), b); code != 0 || err != nil || out.Len() != 2000000 {
			t.Errorf("Run = %d, %v with %d bytes; want 2000000", code, err, out.Len())
		}
	})
}
