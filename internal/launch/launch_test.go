package launch

import (
	"errors"
	"testing"
)

// Rows that are not in the log turn a success into a failure, and leave the exit code of a command that failed. Either
// way the error is printed once: by the caller, or by Report.
func TestRowsThatAreNotInTheLogDecideTheExitCode(t *testing.T) {
	lost := errors.New("close the session: rows are lost")
	for _, c := range []struct {
		code             int
		closed           error
		want             int // exit code; 1 for an error that decides it
		returned, report bool
	}{
		{code: 0, closed: nil, want: 0},
		{code: 7, closed: nil, want: 7},
		{code: 0, closed: lost, want: 1, returned: true},
		{code: 7, closed: lost, want: 7, report: true},
	} {
		var reported []error
		l := &Launcher{Report: func(err error) { reported = append(reported, err) }}
		err := l.unrecorded(c.code, c.closed)
		code, exit := 0, (*ExitError)(nil)
		switch {
		case errors.As(err, &exit):
			code = exit.Code
		case err != nil:
			code = 1
		}
		if code != c.want || errors.Is(err, lost) != c.returned || (len(reported) == 1) != c.report {
			t.Errorf("a command that ended with %d, and %v: %v, reported %v", c.code, c.closed, err, reported)
		}
	}
}
