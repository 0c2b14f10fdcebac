package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// exitError ends the program with the code of the command that it ran,
// saying nothing more.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// classed is implemented by errors that carry a class of CONTRACT section 4,
// for --json.
type classed interface{ ErrorClass() string }

// reasoned is implemented by those of them that know more.
type reasoned interface{ ErrorReason() string }

// reasonNotFound is a name that leads nowhere.
const reasonNotFound = "not_found"

// notFound reports an error about a name that leads nowhere.
func notFound(err error) bool {
	for _, is := range []error{audit.ErrNotFound, store.ErrNotInstalled, vault.ErrNotBound} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// exitCode says err to the person, or as JSON with --json, and turns it into
// the exit code of CONTRACT section 1. It is the only place that does.
func (a *app) exitCode(err error) int {
	if err == nil {
		return 0
	}
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	code, class := 1, "connector_runtime_error"
	if errors.As(err, new(usageError)) {
		code, class = 2, "invalid_request"
	}
	if errors.Is(err, errStopped) {
		code = stoppedCode
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		code = coded.ExitCode()
	}
	var c classed
	if errors.As(err, &c) {
		class = c.ErrorClass()
	}
	reason := class
	if notFound(err) {
		class, reason = "invalid_request", reasonNotFound
	}
	var r reasoned
	if errors.As(err, &r) {
		reason = r.ErrorReason()
	}
	fault, mend := systemFault(err)
	if fault != "" && c == nil && r == nil {
		class, reason = "unavailable", fault
	}
	if h := hint.Of(err); h != "" && !onlyRemedy(fault) {
		mend = h
	}
	// One line, whatever an error below has put in: it is read by people and by grep.
	message := strings.Join(strings.Fields(err.Error()), " ")
	if a.json {
		full := message
		if mend != "" {
			full += " (" + mend + ")"
		}
		_ = json.NewEncoder(a.stderr).Encode(map[string]any{"error": map[string]any{
			"class": class, "message": full, "requested": "", "granted": []string{},
			"audit_id": "", "retriable": false, "details": map[string]string{"reason": reason},
		}})
		return code
	}
	if mend != "" {
		message += "; " + mend
	}
	a.sayf("aileron: %s", message)
	return code
}

// reasonOf returns the reason of a failed act for its row: what the error
// knows, and else that it failed.
func reasonOf(err error) string {
	var r reasoned
	if errors.As(err, &r) {
		return r.ErrorReason()
	}
	var c classed
	if errors.As(err, &c) {
		return c.ErrorClass()
	}
	fault, _ := systemFault(err)
	return first(fault, "failed")
}
