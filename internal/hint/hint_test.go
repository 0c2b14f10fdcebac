package hint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

func ExampleNew() {
	err := hint.New(errors.New("vault not initialised"), "aileron vault init")
	err = fmt.Errorf("start the session: %w", err)

	fmt.Println(err)
	fmt.Println("hint:", hint.Of(err))
	// Output:
	// start the session: vault not initialised
	// hint: aileron vault init
}

func TestOf(t *testing.T) {
	plain := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	inner := hint.New(plain, "create %s", "x")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no error", nil, ""},
		{"no hint", plain, ""},
		{"formatted", inner, "create x"},
		{"wrapped", fmt.Errorf("start: %w", inner), "create x"},
		{"joined", errors.Join(errors.New("another"), inner), "create x"},
		{"a type with a hint", fmt.Errorf("start: %w", errOfType{}), "of its type"},
		{"the outermost wins over a type", hint.New(errOfType{}, "start again"), "start again"},
		{"the outermost wins", hint.New(fmt.Errorf("start: %w", inner), "start again"), "start again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hint.Of(c.err); got != c.want {
				t.Errorf("Of(%v) = %q, want %q", c.err, got, c.want)
			}
		})
	}
}

// errOfType is a type of errors that has a hint.
type errOfType struct{}

func (errOfType) Error() string { return "failed" }
func (errOfType) Hint() string  { return "of its type" }

func TestNewKeepsTheError(t *testing.T) {
	if err := hint.New(nil, "do something"); err != nil {
		t.Errorf("New(nil) = %v, want nil", err)
	}
	err := hint.New(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, "100%% sure")
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, new(*fs.PathError)) {
		t.Errorf("New hides %v from errors.Is or errors.As", err)
	}
	if got, want := err.Error(), "open x: file does not exist"; got != want {
		t.Errorf("New changed the text of the error to %q, want %q", got, want)
	}
}

func TestSystem(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
		text   string
		only   bool
	}{
		{nil, "", "", false},
		{errors.New("not of the system"), "", "", false},
		{unix.ECONNREFUSED, "", "", false},
		{fs.ErrNotExist, "", "", false},
		{unix.EMFILE, "too_many_open_files", "ulimit -n", true},
		{unix.ENOSPC, "disk_full", "free some space", false},
		{unix.ENOLCK, "no_file_locks", "--home", true},
		{unix.EROFS, "read_only", "--home", false},
		{&fs.PathError{Op: "open", Path: "x", Err: unix.EACCES}, "permission_denied", "rights", false},
		{unix.EIO, "io_error", "check the disk", false},
		{&format.Error{Path: "x", Format: "2", Known: 1}, "newer_format", "nothing was changed", true},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		reason, text := hint.System(err)
		if reason != c.reason || !strings.Contains(text, c.text) || (text == "") != (c.text == "") {
			t.Errorf("System(%v) = %q, %q; want %q, %q", c.err, reason, text, c.reason, c.text)
		}
		if hint.Only(reason) != c.only {
			t.Errorf("Only(%q) = %v, want %v", reason, !c.only, c.only)
		}
	}
}
