package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Pruning removes what sessions of a home have left.
type Pruning struct {
	Home string
	Kind string // auto, podman, docker or native: whose sandboxes
	// Find returns the engine of a kind.
	Find func(ctx context.Context, kind string) (*sandbox.Engine, error)
}

// Pruned is what [Pruning.Leftovers] has removed.
type Pruned struct {
	Outputs    int `json:"outputs"`   // of detached sessions that have ended
	Processes  int `json:"processes"` // of removed containers
	Containers int `json:"removed"`
}

// engine returns the engine, or nil where there is none: a native sandbox ends with its session.
func (p Pruning) engine(ctx context.Context) (*sandbox.Engine, error) {
	if p.Kind == sandbox.Native || p.Kind == "auto" && !engine.Installed() {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return p.Find(ctx, p.Kind)
}

// Leftovers removes what killed sessions have left, and the output of ended ones.
func (p Pruning) Leftovers(ctx context.Context) (found Pruned, err error) {
	alive := func(id string) bool { return session.Alive(p.Home, id) }
	e, err := p.engine(ctx)
	if err != nil {
		return found, err
	}
	if e != nil {
		defer e.Close()
		if found.Containers, err = e.Sweep(ctx, alive); err != nil {
			return found, err
		}
		found.Processes = e.EndOrphans()
	}
	if found.Outputs, err = detached.Prune(p.Home, 0, alive); err != nil {
		return found, fmt.Errorf("remove the output of ended sessions: %w", err)
	}
	return found, nil
}

// States removes the kept states of agents: those of a project, or of all projects if it is "", and returns how many it
// removed. One that a sandbox uses is an error, and is left.
func (p Pruning) States(ctx context.Context, project string) (removed int, err error) {
	s := sandbox.State{Home: p.Home, Project: project}
	e, err := p.engine(ctx)
	if err != nil {
		return 0, err
	}
	if e != nil {
		defer e.Close()
		removed, err = e.RemoveStates(ctx, s)
	}
	if p.Kind != "auto" && p.Kind != sandbox.Native {
		return removed, err
	}
	others, otherErr := otherShares(p.Home, "")
	if otherErr != nil {
		return removed, errors.Join(err, otherErr)
	}
	n, nativeErr := sandbox.RemoveNativeStates(s, func(dir string) bool {
		for _, other := range others {
			if other.overlaps(dir) {
				return true
			}
		}
		return false
	})
	return removed + n, errors.Join(err, nativeErr)
}
