package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
)

// A connector that was changed is installed again; one that could not be read
// may be as it was.
func TestTheHintDependsOnWhatIsKnown(t *testing.T) {
	changed, unread := &HashError{}, &UnreadableError{Err: syscall.EACCES}
	for _, c := range []struct {
		err    error
		reason string
		hint   string
	}{
		{changed, "", "install the connector again"},
		{unread, "connector_unreadable", "nothing is known to be changed: check the rights on that file"},
		{&ListError{syscall.EIO}, "store_unreadable", "nothing is known to be changed: check the disk"},
		{&ListError{errors.New("no names")}, "store_unreadable",
			"nothing is known to be changed: check the disk and the rights on the home"},
		{errors.Join(unread, changed), "connector_unreadable", "install the connector again"},
	} {
		err := fmt.Errorf("verify: %w", c.err)
		if reason, is := Unreadable(err); reason != c.reason || is != (c.reason != "") {
			t.Errorf("Unreadable(%v) = %q, %v; want %q", c.err, reason, is, c.reason)
		}
		if got := hint.Of(Hint(err)); !strings.HasPrefix(got, c.hint) {
			t.Errorf("the hint of %v is %q, want %q", c.err, got, c.hint)
		}
	}
}
