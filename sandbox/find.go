package sandbox

import (
	"context"
	"sync"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Engine is an engine that makes sandboxes.
type Engine struct {
	*engine.Engine
	seen   sync.Map // *imagefs.FS of each image that was opened, by its id
	pinned sync.Map // engine.Image of each image that was looked up, by its id, which is a digest of it
	cache  string   // the directory of what is known of images; "" is none
}

// Find returns the engine of a kind: podman, docker, or auto for the first of
// the two that responds. It is waited for with patience, as long as it is used.
func Find(ctx context.Context, kind string, patience engine.Patience) (*Engine, error) {
	e, err := patience.Find(ctx, kind)
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e}, nil
}
