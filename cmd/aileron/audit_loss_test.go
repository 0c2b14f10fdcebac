package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Rows that are not in the log make a success a failure, and leave the code of
// a command that failed. Either way one line says so.
func TestRowsThatAreNotInTheLogDecideTheExitCode(t *testing.T) {
	lost := &audit.LostError{Kept: 1, Path: "/h/audit.spill-X", Lost: 2, Refused: 3, Err: errors.New("disk full")}
	for _, w := range []struct {
		code int
		err  error
		want int
	}{{0, nil, 0}, {7, nil, 7}, {0, lost, 1}, {7, lost, 7}} {
		var errs bytes.Buffer
		a := &app{stderr: &errs}
		code := a.exitCode(a.unrecorded(w.code, lossHint(w.err, "/h")))
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

// An outage has one line at its start and one at its end.
func TestAnOutageHasTwoLines(t *testing.T) {
	var errs bytes.Buffer
	a := &app{stderr: &errs, logLevel: "warn"}
	o := audit.Outage{Err: errors.New("disk full")}
	a.auditOutage(o)
	o.Over, o.Refused = true, 41
	a.auditOutage(o)
	a.auditLost(2)
	for i, want := range []string{"cannot be written: requests are refused", "refused_requests=41", "rows=2"} {
		lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
		if len(lines) != 3 || !strings.Contains(lines[i], want) {
			t.Errorf("%s, want %q in line %d", fmt.Sprintf("%q", lines), want, i+1)
		}
	}
}

// What to do depends on why the log cannot be written.
func TestAnOutageNamesItsWayOut(t *testing.T) {
	c := newCLI(t)
	c.write(requests(200)...)
	path := filepath.Join(c.home, "audit.db")
	held, err := sql.Open("sqlite", path)
	fatal(t, err)
	held.SetMaxOpenConns(1)
	_, err = held.Exec("BEGIN IMMEDIATE")
	fatal(t, err)
	other, err := sql.Open("sqlite", path)
	fatal(t, err)
	_, locked := other.Exec("BEGIN IMMEDIATE")
	fatal(t, held.Close())
	fatal(t, other.Close())
	c.overwrite()
	reader, err := audit.OpenReader(path)
	fatal(t, err)
	damaged := reader.Each(t.Context(), audit.Filter{}, func(audit.Row) error { return nil })
	fatal(t, reader.Close())
	for _, w := range []struct {
		err        error
		line, loss string
	}{
		{locked, "end it and try again", "end the process that holds a lock on audit.db"},
		{damaged, "aileron audit recover", "aileron audit recover"},
		{errors.New("disk full"), "", "free space on the disk of /h"},
	} {
		var errs bytes.Buffer
		a := &app{stderr: &errs, logLevel: "warn"}
		a.auditOutage(audit.Outage{Err: w.err})
		if said := errs.String(); !strings.Contains(said, w.line) || strings.Contains(said, "hint=") != (w.line != "") {
			t.Errorf("%v: %q, want the hint %q", w.err, said, w.line)
		}
		if err := lossHint(&audit.LostError{Kept: 1, Err: w.err}, "/h"); !strings.Contains(hint.Of(err), w.loss) {
			t.Errorf("%v: %v, want the hint %q", w.err, err, w.loss)
		}
	}
}
