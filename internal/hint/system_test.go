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
