package engine

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
)

const (
	// removeTime bounds a removal by an engine that lives.
	removeTime = 2 * time.Minute
	// firstTime is when an engine that lives and has not removed its containers
	// is connected to anew: it may hang in a call, with the lock of a container.
	firstTime = 30 * time.Second
	// interruptTime is the same for a run that was interrupted.
	interruptTime = 15 * time.Second
	// callTime bounds a call on whose response nothing depends.
	callTime = 5 * time.Second
)

var (
	// ErrLeft is returned when containers could not be removed, because their
	// engine went away. Their processes were ended where this process could
	// reach them.
	ErrLeft = errors.New("what the engine still has of it could not be removed")
	// ErrRemoving is returned when another process already removes a container.
	ErrRemoving = errors.New("remove a container: its removal is already under way")
	// errEnding is in the error of a removal when the container ended meanwhile. It
	// is removed by the next one.
	errEnding = errors.New("it has just ended")
	// ErrDependents is in the error of a removal when another container shares
	// the network of the container.
	ErrDependents = errors.New("another container depends on it")
)

// RemoveOnce removes a container, running or not, with its volumes. There is no
// error when it is not there. The error is [ErrRemoving] when another process
// removes it already.
func (e *Engine) RemoveOnce(ctx context.Context, id string) error {
	err := e.removeOnce(ctx, id)
	for try := 1; errors.Is(err, errEnding) && try < endingTries && ctx.Err() == nil; try++ {
		time.Sleep(50 * time.Millisecond)
		err = e.removeOnce(ctx, id)
	}
	return err
}

// endingTries is how often a removal is tried of a container that has just ended.
const endingTries = 10

func (e *Engine) removeOnce(ctx context.Context, id string) error {
	err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	Unwrap(&err)
	switch {
	case err == nil, e.means(err, faultNotFound):
		return nil
	case e.means(err, faultRemoving):
		return ErrRemoving
	case e.means(err, faultEnding):
		return fmt.Errorf("remove a container: %w: %w", errEnding, err)
	case e.means(err, faultDependents):
		return fmt.Errorf("remove a container: %w: %w", ErrDependents, err)
	}
	return fmt.Errorf("remove a container: %w", err)
}

// Remove is RemoveOnce, and waits for an end or a removal that is under way.
func (e *Engine) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for {
		err := e.RemoveOnce(ctx, id)
		if !errors.Is(err, ErrRemoving) && !errors.Is(err, errEnding) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// RemoveAll removes containers, the last of them first, even after ctx has
// ended. Where the engine does not respond any more, it ends their processes
// itself, so that none keeps a network, and then asks the engine that is there
// now: our own Podman service is started anew. The error is [ErrLeft].
func (e *Engine) RemoveAll(ctx context.Context, containers []*Container) error {
	limit := firstTime
	if ctx.Err() != nil {
		limit = interruptTime
	}
	ctx = context.WithoutCancel(ctx)
	defer func() {
		for _, c := range containers {
			c.process.release()
		}
	}()
	for _, c := range containers { // a gateway ends while the command's container is removed
		c.process.signal(syscall.SIGKILL)
	}
	first, cancelFirst := context.WithTimeout(ctx, limit)
	defer cancelFirst()
	err := e.removeEach(first, containers)
	// A container whose creation was given up may be made after it was looked for.
	for errors.Is(err, ErrDependents) && first.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		err = e.removeEach(first, containers)
	}
	if err == nil {
		return nil
	}
	for _, c := range containers {
		c.process.kill(callTime)
	}
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	now, againErr := e.reconnect(ctx)
	Unwrap(&againErr)
	if againErr != nil {
		return fmt.Errorf("%w: %w", ErrLeft, againErr)
	}
	defer now.Close()
	if err := now.removeEach(ctx, containers); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// removeEach removes the last that was made first: a gateway cannot be removed
// before the container that shares its network.
func (e *Engine) removeEach(ctx context.Context, containers []*Container) error {
	var faults []error
	for i := len(containers) - 1; i >= 0; i-- {
		if err := e.Remove(ctx, containers[i].ID); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
