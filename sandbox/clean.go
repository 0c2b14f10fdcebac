package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// ErrLeft says that a run's containers could not be removed, because their
// engine went away. Their processes were ended where this process could reach
// them; Sweep removes the rest when the engine is back.
var ErrLeft = errors.New("what the engine still has of it could not be removed")

const (
	// cleanupTime bounds the removal of a run's containers by an engine that
	// lives.
	cleanupTime = 2 * time.Minute
	// firstTime is when an engine that lives and has not removed them is begun
	// anew: it may hang in a call, with the lock of a container.
	firstTime = 30 * time.Second
	// interruptTime is the same for a run that was interrupted.
	interruptTime = 15 * time.Second
	// callTime bounds a call on whose response nothing depends.
	callTime = 5 * time.Second
)

// clean removes what a run has made. Where the engine does not answer any
// more, it first ends the processes itself, so that none keeps a line, and
// then asks the engine that is there now: our own Podman service is started
// anew.
func (e *Engine) clean(ctx context.Context, parts []*part) error {
	limit := firstTime
	if ctx.Err() != nil {
		limit = interruptTime
	}
	ctx = context.WithoutCancel(ctx)
	defer func() {
		for _, p := range parts {
			p.handle.release()
		}
	}()
	first, cancelFirst := context.WithTimeout(ctx, limit)
	defer cancelFirst()
	err := e.removeAll(first, parts)
	// A box whose creation was given up may be made after it was looked for.
	for err != nil && strings.Contains(err.Error(), "dependent") && first.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		err = e.removeAll(first, parts)
	}
	if err == nil {
		return nil
	}
	for _, p := range parts {
		p.handle.end(callTime)
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	now, againErr := e.again(ctx)
	plainly(&againErr)
	if againErr != nil {
		return fmt.Errorf("%w: %w", ErrLeft, againErr)
	}
	defer now.Close()
	if err := now.removeAll(ctx, parts); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// joined is two errors in one line.
func joined(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

// removeAll removes the last that was made first: a gateway cannot go before
// the box that shares its network.
func (e *Engine) removeAll(ctx context.Context, parts []*part) error {
	var faults []error
	for i := len(parts) - 1; i >= 0; i-- {
		if err := e.remove(ctx, parts[i].id); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// again is the engine as it is now: the one behind the same socket, or a
// Podman service of our own in place of one that died or hangs. One that hangs
// may hold the lock of a container, and with it whoever wants to remove it.
func (e *Engine) again(ctx context.Context) (*Engine, error) {
	if e.service != nil {
		e.service.stop()
		return startPodman(ctx, e.pulse.patience)
	}
	return connect(ctx, e.kind, e.cli.DaemonHost(), e.pulse.patience)
}

// fate is what became of a container that does not answer as it should.
type fate int

const (
	living  fate = iota
	removed      // by somebody else
	astray       // its engine does not answer
)

// look asks the engine for a container's fate.
func (e *Engine) look(ctx context.Context, id string) fate {
	_, err := e.cli.ContainerInspect(context.WithoutCancel(ctx), id)
	switch {
	case err == nil:
		return living
	case errdefs.IsNotFound(err), strings.Contains(err.Error(), "not known"): // half removed, as Podman says it
		return removed
	case client.IsErrConnectionFailed(err):
		return astray
	}
	return living // it answers, and may know more in a moment
}

// fateOf looks whether a container that was killed is being removed: engines
// tell of its end first.
func (e *Engine) fateOf(ctx context.Context, id string) fate {
	for range 10 {
		if f := e.look(ctx, id); f != living {
			return f
		}
		time.Sleep(50 * time.Millisecond)
	}
	return living
}

// explain replaces an error by how the engine ended, or why it was given up,
// where that is the reason.
func (e *Engine) explain(err *error) {
	plainly(err)
	if *err == nil || errors.Is(*err, context.Canceled) || errors.As(*err, new(*WaitError)) || errors.As(*err, new(*GoneError)) {
		return
	}
	lost := client.IsErrConnectionFailed(*err) || errors.Is(*err, io.EOF) || errors.Is(*err, io.ErrUnexpectedEOF) ||
		errors.Is(*err, syscall.ECONNRESET) || errors.Is(*err, syscall.ECONNREFUSED) || errors.Is(*err, syscall.EPIPE)
	if !lost {
		return
	}
	if why := e.wentAway(); why != "" {
		*err = &GoneError{why}
	}
}

// GoneError is returned when the engine ended while it was needed.
type GoneError struct{ why string }

// ErrorClass and ErrorReason are for --json.
func (*GoneError) ErrorClass() string  { return "unavailable" }
func (*GoneError) ErrorReason() string { return "engine_not_responding" }

// Is reports that a GoneError is an ErrEngine.
func (*GoneError) Is(target error) bool { return target == ErrEngine }

func (e *GoneError) Error() string { return "prepare the box: " + e.why }

// wentAway is how the engine ended, for people; "" when it answers.
func (e *Engine) wentAway() string {
	if _, err := e.cli.Ping(context.Background()); !client.IsErrConnectionFailed(err) { // it ends with the engine
		return ""
	}
	if e.service != nil {
		select {
		case <-e.service.done:
			how := "the service of podman that aileron had started was ended (" + e.service.cmd.ProcessState.String() + ")"
			if last := e.pulse.said(); last != "" && e.service.cmd.ProcessState.Exited() { // else a signal ended it
				how += ", its last error: " + last + ","
			}
			return how
		case <-time.After(time.Second): // a dead one is seen at once
		}
	}
	return e.kind + " does not answer on its socket any more"
}
