package main

import (
	"encoding/json"
	"fmt"
)

// formatError is a file that a newer aileron wrote.
type formatError struct {
	path   string
	format int
	known  int
}

func (e *formatError) Error() string {
	return fmt.Sprintf("%s has the format %d, and this aileron (%s) knows %d", e.path, e.format, version, e.known)
}

// ErrorClass and ErrorReason are for --json.
func (*formatError) ErrorClass() string  { return "unavailable" }
func (*formatError) ErrorReason() string { return reasonNewerFormat }

// reasonNewerFormat is the reason of a file that a newer aileron wrote.
const reasonNewerFormat = "newer_format"

// checkFormat returns a *formatError when a JSON file names a newer format
// than known. A file that names none has the first one.
func checkFormat(raw []byte, path string, known int) error {
	var f struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(raw, &f) == nil && f.Format > known {
		return &formatError{path, f.Format, known}
	}
	return nil
}
