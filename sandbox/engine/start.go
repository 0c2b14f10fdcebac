package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/docker/docker/api/types/container"
)

// ErrInterrupted is returned when a signal ended a start with which the engine
// did not get on.
var ErrInterrupted = errors.New("start the sandbox: interrupted")

// Start starts a container.
func (e *Engine) Start(ctx context.Context, id string) error {
	return e.cli.ContainerStart(ctx, id, container.StartOptions{})
}

// StartInterruptible starts a container, and returns the signals that arrived
// meanwhile: its command has had none of them. An engine that does not get on
// within five seconds of the first, or until the second, is given up, and the
// error is [ErrInterrupted].
func (e *Engine) StartInterruptible(
	ctx context.Context, id string, signals <-chan os.Signal,
) (early []os.Signal, err error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	started := make(chan error, 1)
	go func() { started <- e.Start(ctx, id) }()
	var late <-chan time.Time
	for len(early) < 2 {
		select {
		case err := <-started:
			return early, err
		case sig := <-signals:
			early, late = append(early, sig), time.After(callTime)
			continue
		case <-late:
		}
		break
	}
	giveUp()
	if <-started == nil { // just now
		return early, nil
	}
	return nil, ErrInterrupted
}

// Exit is how a container ended.
type Exit struct {
	Code  int
	State *State // after the end; nil: the engine was not asked
}

// Wait returns how a container ends that has been started, or the error that kept
// the engine from reporting it.
func (e *Engine) Wait(ctx context.Context, c *Container) (<-chan Exit, <-chan error) {
	exited, fault := make(chan Exit, 1), make(chan error, 1)
	go func() {
		x, err := e.dialect.exit(ctx, e, c)
		if err != nil {
			fault <- err
			return
		}
		exited <- x
	}()
	return exited, fault
}
