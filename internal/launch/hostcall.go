package launch

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/internal/session"
)

// During opens a session on this host, calls serve with it, and closes it with the exit code that serve returns. The
// context of serve ends with ctx, which signals may end, and when the session is asked to stop: the code is then that
// of such an end. cause is the cause of the session's end otherwise.
func (l *Launcher) During(ctx context.Context, h Host, cause string,
	serve func(context.Context, *HostSession) (code int, err error)) (code int, err error) {
	h.Stop = session.NewStopRequest()
	host, err := l.OpenHost(ctx, h)
	if err != nil {
		return 1, err
	}
	serving, cancel := h.Stop.WithStop(ctx)
	code, err = serve(serving, host)
	cancel()
	switch {
	case h.Stop.Requested():
		code, cause, err = session.StoppedCode, session.StoppedCause, nil
	case ctx.Err() != nil:
		code, cause, err = interruptedCode, "interrupted", nil
	case err != nil:
		code = 1
	}
	return code, errors.Join(err, host.Close(context.WithoutCancel(ctx), code, cause))
}
