package sandbox

import "context"

// Box is a sandbox for tests that have an engine already.
type Box = box

// Run runs a sandbox on an engine that the test shares with others.
func (e *Engine) Run(ctx context.Context, b Box) (code int, err error) { return e.run(ctx, b) }
