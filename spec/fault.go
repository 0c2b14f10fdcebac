package spec

import (
	"errors"
	"fmt"
	"strconv"
)

// Fault is one thing that is wrong with a connector's file, and where.
type Fault struct {
	File string // "" when the caller knows it
	Path string // the JSON path, or the line and key of the TOML; "": the whole file
	What string
}

func (f *Fault) Error() string {
	s := f.What
	if f.Path != "" {
		s = f.Path + ": " + s
	}
	if f.File != "" {
		s = f.File + ": " + s
	}
	return s
}

// Faults gives all the faults inside an error of this package, in order.
func Faults(err error) []*Fault {
	var list []*Fault
	switch e := err.(type) { //nolint:errorlint // this is the walk over the tree that errors.As does
	case nil:
	case *Fault:
		list = append(list, e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = append(list, Faults(inner)...)
		}
	case interface{ Unwrap() error }:
		list = Faults(e.Unwrap())
	}
	return list
}

func at(path, format string, args ...any) *Fault {
	return &Fault{Path: path, What: fmt.Sprintf(format, args...)}
}

// maxFaults bounds what is told about one file; the rest is counted.
const maxFaults = 100

// faults collects what is wrong, so that an author sees all of it at once.
type faults struct {
	list []error
	more int
}

func (f *faults) add(path, format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, at(path, format, args...))
}

func (f *faults) err() error {
	if f.more > 0 {
		f.list = append(f.list, at("", "and %d more faults", f.more))
		f.more = 0
	}
	return errors.Join(f.list...)
}

// join adds a key to a path. A key that is not a plain name is quoted, so
// that it cannot pass for another path or move a terminal's cursor.
func join(path, key string) string {
	if !isName(key, "_-") {
		key = strconv.QuoteToASCII(key[:min(len(key), 100)])
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
