package main

import (
	"context"
	"errors"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// end writes down how the command in the box ended, closes the session, and
// gives what aileron ends with.
func (b *boxRun) end(ctx context.Context, code int, err error) error {
	if errors.Is(err, engine.ErrInterrupted) {
		b.signals.interrupt()
	}
	if err = boxMend(err); failedPreflight(err) {
		b.session.RecordDisabled(context.WithoutCancel(ctx), reasonPreflight, oneLine(err))
	}
	var bad *sandbox.CommandError
	left := errors.Is(err, engine.ErrLeft)
	stopped := b.stopped(ctx, err)
	switch {
	case stopped && b.began:
		err = nil // the command's own end, and its code
	case stopped:
		err, code = nil, session.StoppedCode
	case err != nil && ctx.Err() != nil && !errors.As(err, &bad):
		code = interruptedCode
	}
	cause := session.StoppedCause
	if !stopped {
		cause = causeOf(ctx, err)
	}
	exhausted := exhaustedCause(b.exhausted, b.sandbox.Limits, code)
	if exhausted != "" {
		cause += "; " + exhausted
	}
	closed := b.session.Close(context.WithoutCancel(ctx), code, cause)
	b.ward.dismiss(left)
	if exhausted != "" {
		b.app.infof("aileron: %s", exhausted)
	}
	if stopped {
		b.app.infof("aileron: %s", session.StoppedCause)
	}
	if closed != nil && (err != nil || code != 0) {
		_ = b.app.exitCode(closed) // logs it; how the command ended decides the code
	}
	switch {
	case errors.As(err, &bad):
		_ = b.app.exitCode(err) // says it; the code is a shell's
		return exitError{bad.Code}
	case left && ctx.Err() != nil:
		b.app.infof("aileron: interrupted; %s still has some of the box, which aileron's warden removes when it can", b.sandbox.Engine.Kind())
		return exitError{interruptedCode}
	case left:
		return hint.New(err, "start %s again: the next session, or aileron sandbox prune, removes what is left", b.sandbox.Engine.Kind())
	case err != nil:
		return b.app.interrupted(ctx, err)
	case code != 0:
		return exitError{code}
	}
	return closed
}

// stopped reports whether err is the end that aileron session stop made: that
// of a command which has begun is a cancelled context, and a start that is
// broken off fails in any step of it.
func (b *boxRun) stopped(ctx context.Context, err error) bool {
	if !b.stop.Requested() || ctx.Err() != nil || errors.Is(err, engine.ErrLeft) || failedPreflight(err) {
		return false
	}
	return err == nil || !b.began || errors.Is(err, context.Canceled)
}

// boxMend adds what can be done about an image or a project of which no box
// can be made.
func boxMend(err error) error {
	switch {
	case errors.As(err, new(*sandbox.ImageError)):
		return hint.New(err, "add it to the image, or choose another with --image; aileron sandbox check --agent=CMD looks without a session")
	case errors.As(err, new(*sandbox.ProjectError)):
		return hint.New(err, "go into a project's directory, or name one with --dir")
	}
	return err
}

// failedPreflight reports an image that cannot run the command: nothing of it
// was started.
func failedPreflight(err error) bool {
	return errors.As(err, new(*sandbox.CommandError)) || errors.As(err, new(*sandbox.ImageError)) ||
		errors.As(err, new(*sandbox.ArchitectureError)) || errors.As(err, new(*trust.Error))
}

// causeOf says in session.ended why a box ended.
func causeOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted"
	case err != nil && !errors.Is(err, context.Canceled):
		return oneLine(err)
	}
	return "the command ended"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Reasons of sandbox.proxy.disabled.
const (
	reasonPreflight = "preflight_failed"
	reasonOptOut    = "user_opt_out"
	reasonUnsealed  = "unsupported_sandbox_mode"
)

// interruptedCode is the exit code of what a Ctrl-C ended: 128 and SIGINT.
const interruptedCode = 130

// interrupted says an error that a Ctrl-C caused as that.
func (a *app) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		a.infof("aileron: interrupted")
		return exitError{interruptedCode}
	}
	return err
}
