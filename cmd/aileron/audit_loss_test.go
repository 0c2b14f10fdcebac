package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
)

// Rows that are not in the log make a success a failure, and leave the code of
// a command that failed. Either way one line says so.
func TestRowsThatAreNotInTheLogDecideTheExitCode(t *testing.T) {
	lost := fmt.Errorf("close the session: %w", &audit.LostError{Kept: 1, Path: "/h/audit.spill-X", Lost: 2, Refused: 3, Err: errors.New("disk full")})
	for _, w := range []struct {
		code int
		err  error
		want int
	}{{0, nil, 0}, {7, nil, 7}, {0, lost, 1}, {7, lost, 7}} {
		var errs bytes.Buffer
		a := &app{stderr: &errs}
		code := a.exitCode(a.unrecorded(w.code, auditlog.LossHint(w.err, "/h")))
		if code != w.code && code != 1 || code != w.want {
			t.Errorf("a command that ended with %d, and %v: exit %d, want %d", w.code, w.err, code, w.want)
		}
		line := ""
		if w.err != nil {
			line = "aileron: close the session: the audit log cannot be written: 1 row is kept in /h/audit.spill-X until it can: 2 rows are lost: " +
				"3 refused requests have no row: disk full\nhint: free space on the disk of /h: the next aileron command that writes the log adds the rows\n"
		}
		if errs.String() != line {
			t.Errorf("a command that ended with %d, and %v: %q, want %q", w.code, w.err, errs.String(), line)
		}
	}
}
