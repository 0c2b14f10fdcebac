package sandbox

import (
	"context"
	"time"
)

// Box is a sandbox for tests that have an engine already.
type Box = box

// Run runs a sandbox on an engine that the test shares with others.
func (e *Engine) Run(ctx context.Context, b Box) (code int, err error) { return e.run(ctx, b) }

// HasTimeToStop changes how long the box has between SIGTERM and SIGKILL.
func (b *Box) HasTimeToStop(d time.Duration) { b.grace = d }

// OpenToAll reports whether all users may write to a project.
var OpenToAll = openToAll
