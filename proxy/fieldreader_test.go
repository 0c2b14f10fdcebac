package proxy

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// The copy of a body from which declared fields are read does not make its
// exchange wait for what was shed.
func TestTheCopyForDeclaredFieldsWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(800)
		old := b.Conn().Hold(func() {})
		old.Stall(500)
		if !b.Conn().Hold(nil).TryTake(400) || !old.Shed() {
			t.Fatal("nothing was shed")
		}
		const text = `{"title":"a title"}`
		r := &fieldReader{ReadCloser: io.NopCloser(strings.NewReader(text)), hold: b.Conn().Hold(nil)}
		began := time.Now()
		if got, err := io.ReadAll(r); err != nil || string(got) != text || string(r.seen) != text {
			t.Errorf("read %q, %v, and kept %q", got, err, r.seen)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it waited for %v", took)
		}
	})
}
