package sandbox

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// MaxProcesses is how many processes and threads a sandbox may have.
const MaxProcesses = 4096

// machine returns what the engine's machine has.
func (e *Engine) machine(ctx context.Context) (_ engine.Limits, err error) {
	defer e.Explain(&err)
	host, err := e.Host(ctx)
	if err != nil {
		return engine.Limits{}, fmt.Errorf("ask %s what its machine has: %w", e.Kind(), err)
	}
	return host.Machine, nil
}

// Share returns what a sandbox may have of a machine unless it is configured:
// three quarters of its memory, and all its CPUs but a quarter of one.
func Share(machine engine.Limits) engine.Limits {
	return engine.Limits{Memory: machine.Memory / 4 * 3, CPUs: max(machine.CPUs-0.25, 0)}
}
