// Package format recognises files that a newer aileron wrote. They are refused and
// never rewritten: [Error] names their format.
//
// [Check] reads the format of a directory, such as the vault, from a file of that
// name in it, and [CheckJSON] that of a JSON file from its key "format". Without
// either, the format is [First].
package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Name is the file that holds the format of a directory.
const Name = "format"

// First is the format of files and directories that name none.
const First = 1

// maxFile is the size of the part of a format file that is read.
const maxFile = 64

// Error is returned for a file or directory that a newer aileron wrote.
type Error struct {
	Path   string
	Format string // as it is written
	Known  int
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s has the format %.20s, and this aileron knows formats up to %d", e.Path, e.Format, e.Known)
}

// ErrorClass and ErrorReason return those in the error object of --json.
func (*Error) ErrorClass() string  { return "unavailable" }
func (*Error) ErrorReason() string { return "newer_format" }

// Check returns an [*Error] if the directory has a newer format than known. A format
// that is not a number is newer.
func Check(dir string, known int) error {
	path := filepath.Join(dir, Name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the format of %s: %w", dir, errors.Unwrap(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return fmt.Errorf("read the format of %s: %w", dir, errors.Unwrap(err))
	}
	text := strings.TrimSpace(string(raw))
	if n, err := strconv.Atoi(text); text != "" && (err != nil || n > known) {
		return &Error{Path: dir, Format: text, Known: known}
	}
	return nil
}

// CheckJSON returns an [*Error] if the JSON object in raw, the content of path, has a
// newer format than known.
func CheckJSON(raw []byte, path string, known int) error {
	var f struct {
		Format json.RawMessage `json:"format"`
	}
	if json.Unmarshal(raw, &f) != nil || f.Format == nil {
		return nil //nolint:nilerr // its own reader finds what is wrong with it
	}
	if n, err := strconv.Atoi(string(f.Format)); err != nil || n > known {
		return &Error{Path: path, Format: string(f.Format), Known: known}
	}
	return nil
}
