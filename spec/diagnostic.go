package spec

import (
	"errors"
	"fmt"
	"strconv"
)

// Diagnostic is an error at one place of a connector's file.
type Diagnostic struct {
	File    string // "" when the caller knows it
	Path    string // the JSON path, or the line and key of the TOML; "": the whole file
	Message string
}

func (d *Diagnostic) Error() string {
	s := d.Message
	if d.Path != "" {
		s = d.Path + ": " + s
	}
	if d.File != "" {
		s = d.File + ": " + s
	}
	return s
}

// Diagnostics returns every diagnostic in the tree of an error of this package,
// in order.
func Diagnostics(err error) []*Diagnostic {
	var list []*Diagnostic
	switch e := err.(type) { //nolint:errorlint // this is the walk over the tree that errors.As does
	case nil:
	case *Diagnostic:
		list = append(list, e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = append(list, Diagnostics(inner)...)
		}
	case interface{ Unwrap() error }:
		list = Diagnostics(e.Unwrap())
	}
	return list
}

func newDiagnostic(path, format string, args ...any) *Diagnostic {
	return &Diagnostic{Path: path, Message: fmt.Sprintf(format, args...)}
}

// maxDiagnostics bounds the diagnostics of one file; the others are counted.
const maxDiagnostics = 100

// diagnostics collects the mistakes in a file, so that its author sees them all.
type diagnostics struct {
	list []error
	more int
	// pathless is for a reading that only finds out whether there is a mistake: the paths of its nodes are not made.
	pathless bool
}

func (d *diagnostics) add(path, format string, args ...any) {
	if len(d.list) == maxDiagnostics {
		d.more++
		return
	}
	d.list = append(d.list, newDiagnostic(path, format, args...))
}

func (d *diagnostics) err() error {
	if d.more > 0 {
		d.list = append(d.list, newDiagnostic("", "and %d more errors", d.more))
		d.more = 0
	}
	return errors.Join(d.list...)
}

// join returns path with a key added to it. A key that is not a plain name is
// quoted, so that it cannot pass for another path or move a terminal's cursor.
func join(path, key string) string {
	if !isName(key, "_-") {
		key = strconv.QuoteToASCII(key[:min(len(key), 100)])
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
