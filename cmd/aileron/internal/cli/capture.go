package cli

import (
	"cmp"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
)

// CheckCapture refuses a capture that the sandbox's command could read or replace, as a usage error.
func (o *SandboxOptions) CheckCapture() error {
	if o.Capture == "" || o.Sandbox == "off" {
		return nil
	}
	path, err := launch.PlaceCapture(o.Capture, cmp.Or(o.Dir, "."), o.Shared.Mounts)
	if err != nil {
		return failure.Usage(err)
	}
	o.Capture = path // without links: they may lead elsewhere later
	return nil
}
