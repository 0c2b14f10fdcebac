package sandbox

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// ErrInterrupted says that a signal ended a start with which the engine did
// not get on.
var ErrInterrupted = errors.New("start the box: interrupted")

// begin starts a box, and gives the signals that came meanwhile: its command
// has had none of them. An engine that does not get on within callTime of the
// first, or until the second, is given up.
func (e *Engine) begin(ctx context.Context, b Box, id string) (early []os.Signal, err error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	started := make(chan error, 1)
	go func() { started <- e.cli.ContainerStart(ctx, id, container.StartOptions{}) }()
	var late <-chan time.Time
	for len(early) < 2 {
		select {
		case err := <-started:
			return early, err
		case sig := <-b.Signals:
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

// attach attaches to a container, as long as ctx lives: the client hears no
// end of it once it has asked, and is left to an engine that does not answer.
func (e *Engine) attach(ctx context.Context, id string, opts container.AttachOptions) (types.HijackedResponse, error) {
	type answer struct {
		stream types.HijackedResponse
		err    error
	}
	answered := make(chan answer)
	go func() {
		stream, err := e.cli.ContainerAttach(context.WithoutCancel(ctx), id, opts)
		select {
		case answered <- answer{stream, err}:
		case <-ctx.Done():
			if err == nil {
				stream.Close()
			}
		}
	}()
	select {
	case a := <-answered:
		return a.stream, a.err
	case <-ctx.Done():
		return types.HijackedResponse{}, ctx.Err()
	}
}
