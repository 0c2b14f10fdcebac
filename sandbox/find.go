package sandbox

import (
	"context"
	"sync"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Engine is an engine that makes sandboxes.
type Engine struct {
	*engine.Engine
	seen sync.Map // imagefs.Tree of each image that was looked into
}

// Find returns the engine of a kind: podman, docker, or auto for the first of
// the two that responds.
func Find(ctx context.Context, kind string) (*Engine, error) { return Patience{}.Find(ctx, kind) }

// Patience is how long an engine is waited for.
type Patience engine.Patience

// Find is the function Find, with this patience for the engine.
func (p Patience) Find(ctx context.Context, kind string) (*Engine, error) {
	e, err := engine.Patience(p).Find(ctx, kind)
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e}, nil
}

type (
	// Limits bound what a sandbox may use.
	Limits = engine.Limits
	// Exhaustion is what a sandbox ran out of.
	Exhaustion = engine.Exhaustion
	// Wait is a wait for an engine.
	Wait = engine.Wait
)

var (
	// ErrEngine is engine.ErrEngine.
	ErrEngine = engine.ErrEngine
	// ErrLeft is engine.ErrLeft.
	ErrLeft = engine.ErrLeft
	// ErrInterrupted is engine.ErrInterrupted.
	ErrInterrupted = engine.ErrInterrupted
)
