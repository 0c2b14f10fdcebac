package launch

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals are those that aileron gets while it has a sandbox. Until the command runs they interrupt the preparation;
// then they are the command's.
type signals struct {
	received  chan os.Signal
	forward   chan os.Signal // the command's
	running   chan struct{}  // closed when the command is about to start
	interrupt context.CancelFunc
}

// receiveSignals receives signals until stop. The context ends with the first one that comes before the command runs.
func receiveSignals(ctx context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(ctx)
	s := &signals{received: make(chan os.Signal, 8), forward: make(chan os.Signal, 8), running: make(chan struct{}),
		interrupt: cancel}
	signal.Notify(s.received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go s.sort(ctx)
	return ctx, s
}

func (s *signals) sort(ctx context.Context) {
	for {
		select {
		case sig := <-s.received:
			select {
			case <-s.running:
				select {
				case s.forward <- sig:
				case <-ctx.Done():
					return
				}
			default:
				s.interrupt()
			}
		case <-ctx.Done():
			return
		}
	}
}

// started passes signals to the command from now on.
func (s *signals) started() { close(s.running) }

// stop ends the reception: signals have their default effect again.
func (s *signals) stop() {
	signal.Stop(s.received)
	s.interrupt()
}
