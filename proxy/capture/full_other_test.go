//go:build !linux

package capture

import "errors"

// captureUntilFull needs a file system of a test's own.
func captureUntilFull(string, string) error { return errors.ErrUnsupported }
