package engine

import (
	"context"
	"time"

	"github.com/docker/docker/client"
)

// State is what an engine reports of a container.
type State struct {
	User string   // of its configuration
	Env  []string // the image's, and that of its Config after it

	Running, Paused bool
	Exited          bool // its first process has ended with ExitCode; of one that is removed just now that is not known
	OOMKilled       bool // the kernel killed a process of it for its memory
	ExitCode        int
	PID             int // of its first process; 0: not known

	Layer Layer
}

// Inspect returns the state of a container. The error satisfies [IsNotFound]
// when there is no such container.
func (e *Engine) Inspect(ctx context.Context, id string) (State, error) {
	c, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return State{}, err
	}
	s := State{Running: true} // until the engine reports otherwise
	if c.Config != nil {
		s.User, s.Env = c.Config.User, c.Config.Env
	}
	if c.ContainerJSONBase != nil && c.State != nil {
		s.Running, s.Paused, s.OOMKilled = c.State.Running, c.State.Paused, c.State.OOMKilled
		s.ExitCode, s.PID = c.State.ExitCode, c.State.Pid
		// Podman reports stopped until it has cleaned up behind the process.
		s.Exited = c.State.Status == "exited" || c.State.Status == "stopped"
	}
	if _, socket := e.Local(); socket {
		s.Layer = layerOf(c)
	}
	return s, nil
}

// Presence is whether a container can still be asked for.
type Presence int

// The presences of a container.
const (
	Present     Presence = iota
	Removed              // by another process
	Unreachable          // its engine does not respond
)

// Presence waits for a moment for a container to be removed that was killed:
// engines report its end first.
func (e *Engine) Presence(ctx context.Context, id string) Presence {
	for range 10 {
		if p := e.presence(ctx, id); p != Present {
			return p
		}
		time.Sleep(50 * time.Millisecond)
	}
	return Present
}

func (e *Engine) presence(ctx context.Context, id string) Presence {
	_, err := e.cli.ContainerInspect(context.WithoutCancel(ctx), id)
	switch {
	case err == nil:
		return Present
	case IsNotFound(err), e.means(err, faultHalfGone):
		return Removed
	case client.IsErrConnectionFailed(err):
		return Unreachable
	}
	return Present // it responds, and may report more in a moment
}
