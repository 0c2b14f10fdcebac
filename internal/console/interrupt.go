package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// ShowDuring shows a status while work lasts, which takes no context. A signal clears the status and ends the command;
// work then ends with the process.
func (c *Console) ShowDuring(ctx context.Context, status string, work func() error) error {
	c.ShowStatus(status)
	defer c.ShowStatus("")
	return c.Interruptible(ctx, func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- work() }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Interruptible calls work with a context that the first SIGINT, SIGTERM, SIGHUP or SIGQUIT ends, and returns its
// error: if a signal came before that, the exit code of a program that the signal ended. What work does to leave
// nothing behind is not interrupted by another signal.
func (c *Console) Interruptible(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	came := make(chan os.Signal, 1)
	go func() {
		select {
		case sig := <-signals:
			came <- sig
			cancel()
		case <-ctx.Done():
		}
	}()
	err := work(ctx)
	if err == nil {
		return nil
	}
	select {
	case sig := <-came:
		c.Infof("aileron: interrupted")
		return signalled(sig)
	default:
		return err
	}
}
