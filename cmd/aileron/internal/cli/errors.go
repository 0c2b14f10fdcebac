package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// ExitCode prints err, and returns the exit code of CONTRACT section 1. It is the only place that does either.
func (a *App) ExitCode(err error) int {
	var exit console.ExitError
	var ended *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &ended) && ended.Err == nil:
		return ended.Code
	}
	f := failure.Describe(err)
	if a.JSON {
		printFailureJSON(f, a.Stderr)
	} else {
		printFailure(f, a.Stderr, a.MessagesOnTerminal(), a.MessageColumns())
	}
	return f.Code
}

// printFailure writes what failed, why, and what to do about it: in one line, as scripts expect it (CONTRACT
// section 1), and on a terminal with the hint on a line of its own, in lines of so many columns.
func printFailure(f failure.Report, w io.Writer, terminal bool, columns int) {
	text, more := termsafe.Line("aileron: "+f.Message), ""
	if f.Hint != "" {
		more = termsafe.Line("hint: " + f.Hint)
	}
	switch {
	case terminal && more != "":
		text = console.Fitted(text, columns) + "\n" + console.Fitted(more, columns)
	case more != "":
		text += "; " + more
	default:
		text = console.Fitted(text, columns)
	}
	fmt.Fprintln(w, text)
}

// printFailureJSON writes the failure as the object of CONTRACT section 4.
func printFailureJSON(f failure.Report, w io.Writer) {
	message := f.Message
	if f.Hint != "" {
		message += " (" + f.Hint + ")"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"class": f.Class, "message": message, "connector": f.Connector, "requested": "", "granted": []string{},
		"audit_id": "", "retriable": false, "details": map[string]string{"reason": f.Reason},
	}})
}

// asksJSON reports whether --json is among aileron's own arguments.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}
