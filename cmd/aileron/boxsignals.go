package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// boxSignals are the signals that aileron gets while it has a box: until the
// command runs they end its preparation, and then they are the command's.
type boxSignals struct {
	received  chan os.Signal
	forward   chan os.Signal // the command's
	running   chan struct{}  // closed when the command is about to start
	interrupt context.CancelFunc
}

// receiveSignals takes the signals until stop. The context ends with the
// first that comes before the command runs.
func receiveSignals(ctx context.Context) (context.Context, *boxSignals) {
	ctx, cancel := context.WithCancel(ctx)
	s := &boxSignals{received: make(chan os.Signal, 8), forward: make(chan os.Signal, 8), running: make(chan struct{}), interrupt: cancel}
	signal.Notify(s.received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go s.sort(ctx)
	return ctx, s
}

func (s *boxSignals) sort(ctx context.Context) {
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

// started gives the signals from now on to the command.
func (s *boxSignals) started() { close(s.running) }

// stop gives them back to the system.
func (s *boxSignals) stop() {
	signal.Stop(s.received)
	s.interrupt()
}
