package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
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
	f := DescribeFailure(err)
	if a.JSON {
		f.printJSON(a.Stderr)
	} else {
		f.Print(a.Stderr, a.MessagesOnTerminal(), a.MessageColumns())
	}
	return f.code
}

// errorReport is an error as the caller of aileron gets it.
type errorReport struct {
	code          int
	Class, Reason string
	Message, hint string // one line each
}

func DescribeFailure(err error) errorReport {
	f := errorReport{code: 1, Class: "connector_runtime_error"}
	if errors.As(err, new(failure.UsageError)) {
		f.code, f.Class = 2, "invalid_request"
	}
	if errors.Is(err, session.ErrStopped) {
		f.code = session.StoppedCode
	}
	var code failure.Coded
	if errors.As(err, &code) {
		f.code = code.ExitCode()
	}
	var class failure.Classed
	if errors.As(err, &class) {
		f.Class = class.ErrorClass()
	}
	f.Reason = f.Class
	if failure.NotFound(err) {
		f.Class, f.Reason = "invalid_request", failure.ReasonNotFound
	}
	var reason failure.Reasoned
	if errors.As(err, &reason) {
		f.Reason = reason.ErrorReason()
	}
	fault, remedy := hint.System(err)
	if fault != "" && class == nil && reason == nil {
		f.Class, f.Reason = "unavailable", fault
	}
	if h := hint.Of(err); h != "" && !hint.Only(fault) {
		remedy = h
	}
	f.Message, f.hint = AsLine(err.Error()), AsLine(remedy)
	return f
}

// AsLine returns text as one line, whatever the errors below have put in: people read it, and grep.
func AsLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Print writes what failed, why, and what to do about it: in one line, as scripts expect it (CONTRACT section 1), and
// on a terminal with the hint on a line of its own, in lines of so many columns.
func (f errorReport) Print(w io.Writer, terminal bool, columns int) {
	text, more := termsafe.Line("aileron: "+f.Message), ""
	if f.hint != "" {
		more = termsafe.Line("hint: " + f.hint)
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

// printJSON writes the failure as the object of CONTRACT section 4.
func (f errorReport) printJSON(w io.Writer) {
	message := f.Message
	if f.hint != "" {
		message += " (" + f.hint + ")"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"class": f.Class, "message": message, "requested": "", "granted": []string{},
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
