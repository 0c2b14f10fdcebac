package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/sandbox/carrier"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// namePrefix is that of every container's name. Labels prove nothing: a
// container has those of its image, which may be anyone's.
const namePrefix = "aileron-"

// scratchName names a container in which an image's files are read.
func scratchName() string { return namePrefix + noSession + "-" + strings.ToLower(rand.Text()) }

// orphanGrace is how old files must be that have no container: they are made
// before it is recorded.
const orphanGrace = 2 * time.Minute

// ours selects the containers of all sessions.
func ours() engine.Filter {
	return engine.Filter{Label: labelSession, NamePrefix: namePrefix, Role: labelRole, OrphanGrace: orphanGrace}
}

// Count returns the number of containers of a session.
func (e *Engine) Count(ctx context.Context, session string) (_ int, err error) {
	defer e.Explain(&err)
	list, err := e.List(ctx, ours())
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range list {
		if c.Labels[labelSession] == session {
			n++
		}
	}
	return n, nil
}

// Sweep removes the containers of sessions that do not live any more, and
// returns how many it removed.
func (e *Engine) Sweep(ctx context.Context, alive func(session string) bool) (_ int, err error) {
	defer e.Explain(&err)
	list, err := e.List(ctx, ours())
	if err != nil {
		return 0, err
	}
	var removed []string
	defer func() { e.EndRemains(removed) }()
	var faults []error
	until := time.Now().Add(recordedTime)
	// A gateway cannot be removed before the sandbox that shares its network. One
	// without a role has no container any more, only files.
	for _, role := range []string{"box", "gateway", "carrier", ""} {
		for _, c := range list {
			if c.Labels[labelRole] != role || !c.Named(namePrefix) || role != "" && lives(c, alive, until) {
				continue
			}
			switch err := e.RemoveOnce(ctx, c.ID); {
			case errors.Is(err, engine.ErrRemoving): // another process sweeps too
			case errors.Is(err, engine.ErrDependents): // its sandbox was made meanwhile; the next sweep has both
			case err != nil:
				faults = append(faults, err)
			default:
				removed = append(removed, c.ID)
			}
		}
	}
	dead := func(v engine.Listed) bool { return v.Named(namePrefix) && !lives(v, alive, until) }
	faults = append(faults, carrier.RemoveVolumes(ctx, e.Engine, labelRole, "sockets", dead))
	return len(removed), errors.Join(faults...)
}

// EndOrphans ends the processes of containers of sessions that the engine has
// removed without knowing of them, and returns how many it has ended.
func (e *Engine) EndOrphans() int { return e.Engine.EndOrphans(namePrefix) }

// recordedTime is how long Sweep waits for sessions that seem to be alive although their processes have ended.
const recordedTime = 5 * time.Second

// lives reports whether the session of a container lives. One of another home is
// recognised by its process. The lock of one whose process has ended is held while
// another process records that end, which begins at the same time: it is waited for.
func lives(c engine.Listed, alive func(session string) bool, until time.Time) bool {
	if procid.Lives(c.Labels[labelOwner]) {
		return true
	}
	for alive(c.Labels[labelSession]) {
		if time.Now().After(until) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}
