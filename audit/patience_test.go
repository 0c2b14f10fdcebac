package audit

import (
	"os"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// patience is how long tests wait, and the logs in them for other processes: a process that is alone needs
// milliseconds of it, one beside others on a busy machine may need many seconds.
var patience = must.Patience(5 * time.Minute)

func TestMain(m *testing.M) {
	chain.BusyTimeout, settleTimeout = patience, patience
	os.Exit(m.Run())
}

// impatient makes the logs of a test give up soon what they wait for: it never comes.
func impatient(t *testing.T, timeout *time.Duration) {
	t.Helper()
	*timeout = 500 * time.Millisecond
	t.Cleanup(func() { *timeout = patience })
}
