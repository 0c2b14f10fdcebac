package main

import (
	"cmp"

	"github.com/ALRubinger/aileron/internal/launch"
)

// checkCapture refuses a capture that the sandbox's command could read or replace, as a usage error.
func (o *sandboxOptions) checkCapture() error {
	if o.capture == "" || o.sandbox == "off" {
		return nil
	}
	path, err := launch.PlaceCapture(o.capture, cmp.Or(o.dir, "."), o.shared.mounts)
	if err != nil {
		return usageError{err}
	}
	o.capture = path // without links: they may lead elsewhere later
	return nil
}
