package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

// The class and the reason of an error are those of what it wraps, whatever was added on the way.
func TestAnErrorIsDescribedByWhatItWraps(t *testing.T) {
	around := func(err error) error { return hint.New(fmt.Errorf("do it:\n%w", err), "try again") }
	for _, c := range []struct {
		err                 error
		code                int
		class, reason, hint string
	}{
		{around(errors.New("it failed")), 1, "connector_runtime_error", "connector_runtime_error", "try again"},
		{around(Usagef("--x is %q", "y")), 2, "invalid_request", "invalid_request", "try again"},
		{around(Declined("not done")), 1, "approval_denied", "not_confirmed", "try again"},
		{around(vault.ErrNotBound), 1, "invalid_request", ReasonNotFound, "try again"},
		{around(Input(errors.New("it is cut"), ReasonKey)), 1, "invalid_request", ReasonKey, "try again"},
		{OfInput(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, ReasonKey), 1, "invalid_request",
			ReasonNotFound, ""},
	} {
		got := Describe(c.err)
		if got.Code != c.code || got.Class != c.class || got.Reason != c.reason || got.Hint != c.hint {
			t.Errorf("%v is %+v, want %d %s %s %q", c.err, got, c.code, c.class, c.reason, c.hint)
		}
		if AsLine(got.Message) != got.Message {
			t.Errorf("the message is not one line: %q", got.Message)
		}
	}
}
