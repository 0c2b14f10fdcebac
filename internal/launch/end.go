package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// end records how the command in the sandbox ended, closes the session, and returns the end of the launch. code and err
// are those of run.
func (b *sandboxed) end(ctx context.Context, code int, err error) error {
	if errors.Is(err, engine.ErrInterrupted) {
		b.signals.interrupt()
	}
	own := hint.Of(err)
	if err = withHint(err); failedPreflight(err) {
		if own == "" && b.Advice != "" {
			err = hint.New(err, "%s", b.Advice)
		}
		err = b.withoutEngineHint(err)
		b.session.RecordDisabled(context.WithoutCancel(ctx), reasonPreflight, asLine(err))
	}
	left := errors.Is(err, engine.ErrLeft)
	stopped := b.stopped(ctx, err)
	switch {
	case stopped && b.hasBegun():
		err = nil // the command's own end, and its code
	case stopped:
		err, code = nil, session.StoppedCode
	case err != nil && ctx.Err() != nil && !errors.As(err, new(*sandbox.CommandError)):
		code = interruptedCode
	}
	b.closeSession(ctx, code, err, stopped, left)
	return b.result(ctx, code, err, left)
}

// closeSession closes the session with the cause of its end, dismisses the reaper, and prints what is not an error.
func (b *sandboxed) closeSession(ctx context.Context, code int, err error, stopped, left bool) {
	cause := session.StoppedCause
	if !stopped {
		cause = causeOf(ctx, err)
	}
	exhausted := exhaustedCause(b.exhausted, b.prepared.Limits, code)
	if exhausted != "" {
		cause += "; " + exhausted
	}
	b.session.NoteHostFiles(b.host.changes(ctx, b.hasBegun()))
	if !left && !b.isSharedNow() { // to remove a mount point of another sandbox would end its mount
		b.host.removeMade() // not while the project is looked at
	}
	if !left {
		go b.prepared.Close() // which takes a moment; Sandboxed waits for it
	}
	b.unclosed = b.session.Close(context.WithoutCancel(ctx), code, cause)
	b.reaper.dismiss(left)
	if b.hasBegun() {
		b.ended(b.session, Ended{
			Agent: b.Agent, Duration: time.Since(b.began), ExitCode: code, Cause: cause, Changed: b.host.found,
			Incomplete: b.host.incomplete, Kept: b.Keep,
		})
	}
	if exhausted != "" {
		b.Infof("aileron: %s", exhausted)
	}
	if stopped {
		b.Infof("aileron: %s", session.StoppedCause)
	}
}

// hasBegun reports whether the command began.
func (b *sandboxed) hasBegun() bool { return !b.began.IsZero() }

// result returns the end of the launch: the error of the sandbox decides it, then the command's exit code, then the
// error of closing the session.
func (b *sandboxed) result(ctx context.Context, code int, err error, left bool) error {
	if b.unclosed != nil && (err != nil || code != 0) {
		b.Report(b.unclosed)
	}
	var bad *sandbox.CommandError
	switch {
	case errors.As(err, &bad):
		return &ExitError{Code: bad.Code, Err: err} // a shell's code
	case left && ctx.Err() != nil:
		b.Infof("aileron: interrupted; %s still has parts of the sandbox, which aileron's reaper removes when it can",
			b.prepared.Kind())
		return &ExitError{Code: interruptedCode}
	case left:
		return hint.New(err, "start %s again: the next session, or aileron sandbox prune, removes what is left",
			b.prepared.Kind())
	case err != nil:
		return b.interrupted(ctx, err)
	case code != 0:
		return &ExitError{Code: code}
	}
	return b.unclosed
}

// stopped reports whether err is the end that aileron session stop caused. A command that has begun then ends with a
// cancelled context, and a start that is interrupted fails in any of its steps.
func (b *sandboxed) stopped(ctx context.Context, err error) bool {
	if !b.stop.Requested() || ctx.Err() != nil || errors.Is(err, engine.ErrLeft) || failedPreflight(err) {
		return false
	}
	return err == nil || !b.hasBegun() || errors.Is(err, context.Canceled)
}

// withHint adds a hint to the error of an image or a project for which there can be no sandbox.
func withHint(err error) error {
	switch {
	case hint.Of(err) != "":
	case errors.As(err, new(*sandbox.ImageError)):
		return hint.New(err, "add it to the image, or choose another with --image; "+
			"aileron sandbox check --agent=CMD checks an image without a session")
	case errors.As(err, new(*sandbox.ProjectError)):
		return hint.New(err, "go into a project's directory, or name one with --dir")
	}
	return err
}

// failedPreflight reports whether err is about an image that cannot run the command: nothing of it was started.
func failedPreflight(err error) bool {
	return errors.As(err, new(*sandbox.CommandError)) || errors.As(err, new(*sandbox.ImageError)) ||
		errors.As(err, new(*sandbox.ArchitectureError)) || errors.As(err, new(*trust.Error)) ||
		errors.As(err, new(*native.Refusal))
}

// causeOf returns the cause that session.ended has for the end of a sandbox.
func causeOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted"
	case err != nil && !errors.Is(err, context.Canceled):
		return asLine(err)
	}
	return "the command ended"
}

func asLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Reasons of sandbox.proxy.disabled.
const (
	reasonPreflight = "preflight_failed"
	reasonOptOut    = "user_opt_out"
	reasonUnsealed  = "unsupported_sandbox_mode"
)

// limit returns the limits of the sandbox on a machine: a share of it, unless config.toml says otherwise.
func (b *sandboxed) limit(machine engine.Limits) engine.Limits {
	limits := sandbox.Share(machine)
	if b.Config.Memory != nil {
		limits.Memory = int64(*b.Config.Memory)
	}
	if b.Config.CPUs != nil {
		limits.CPUs = float64(*b.Config.CPUs)
	}
	return limits.Within(machine)
}

// warnUnenforced warns about limits that the kernel does not enforce.
func (b *sandboxed) warnUnenforced(limits []string) {
	why := b.prepared.Kind() + " has no control group of its own for this sandbox (rootless engines need delegated " +
		"cgroups of version 2)"
	if b.prepared.IsNative() {
		why = "no control group of version 2 is delegated to this session of yours (systemd-run --user --scope has one)"
	}
	b.Infof("aileron: warning: [sandbox] %s not enforced: %s", strings.Join(limits, ", "), why)
}

// exhaustedCause returns the cause of the end, with code, of a sandbox that ran out of something; "" for any other.
func exhaustedCause(e engine.Exhaustion, limits engine.Limits, code int) string {
	var causes []string
	if e.Memory {
		what := "a process of the sandbox"
		if code == 128+9 {
			what = "the command"
		}
		why := "the machine ran out of memory"
		if limits.Memory > 0 {
			why = "the sandbox reached its limit of " + engine.FormatBytes(limits.Memory) +
				"; raise [sandbox] memory in config.toml"
		}
		causes = append(causes, "out of memory: the kernel killed "+what+": "+why)
	}
	if e.Processes {
		causes = append(causes, fmt.Sprintf("out of processes: the sandbox reached its limit of %d", sandbox.MaxProcesses))
	}
	return strings.Join(causes, "; ")
}
