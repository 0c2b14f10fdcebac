package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

type brokenRecorder struct{}

func (brokenRecorder) AppendSoon(context.Context, audit.Row) error { return errors.New("disk full") }

func (brokenRecorder) Append(context.Context, audit.Row) (audit.Row, error) {
	return audit.Row{}, errors.New("disk full")
}

func TestNothingLeavesThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.cfg.Audit = brokenRecorder{}
	res, body := w.do("GET", "https://api.good.example/v1/items", "")
	if res.StatusCode != 503 || !strings.Contains(body, string(ReasonAudit)) || len(w.requests()) != 0 {
		t.Errorf("got %d %s, %d requests left", res.StatusCode, body, len(w.requests()))
	}
}

// fullDisk is a log that commits the first row and then no other, and holds
// those that nothing waits for.
type fullDisk struct {
	Recorder
	mu        sync.Mutex
	committed []audit.Row
	held      []audit.Row
	settled   int // how many were held when that was waited for
}

func (d *fullDisk) Flush(context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = len(d.held)
}

func (d *fullDisk) Append(_ context.Context, r audit.Row) (audit.Row, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.committed) > 0 {
		return r, errors.New("disk full")
	}
	d.committed = append(d.committed, r)
	return r, nil
}

func (d *fullDisk) AppendSoon(_ context.Context, r audit.Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = append(d.held, r)
	return nil
}

// A session that ends in order has nothing that could find such an intent.
func TestAFailureAfterTheIntentIsNotLostOnAFullDisk(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the kernel may reset the connection
		panic(http.ErrAbortHandler)
	})
	log := &fullDisk{}
	w.plane.cfg.Audit = log
	res, body := w.do("POST", "https://api.good.example/v1/items", "{}")
	if len(log.committed) != 1 || len(log.held) != 1 {
		t.Fatalf("committed: %+v\nheld: %+v\nwant the intent and its outcome; the client got %d %s", log.committed,
			log.held, res.StatusCode, body)
	}
	intent, outcome := log.committed[0], log.held[0]
	if intent.Event != audit.EventProxyStarted || outcome.Event != audit.EventProxyRejected || outcome.Status != 502 ||
		Reason(outcome.Reason) != ReasonUpstreamEnd || outcome.RequestID != intent.RequestID || intent.RequestID == "" {
		t.Errorf("the intent is %+v, its outcome %+v", intent, outcome)
	}
	if log.settled != 1 {
		t.Error("the client is told of a row that may not be committed yet")
	}
	if res.StatusCode != 502 || !strings.Contains(body, outcome.ID) || res.Header.Get("X-Aileron-Audit-Id") != outcome.ID {
		t.Errorf("the client got %d %s", res.StatusCode, body)
	}
}
