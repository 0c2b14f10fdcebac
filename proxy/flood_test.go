package proxy

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Refusals beyond those that may wait are visible with their number, in few
// rows, and each answer names the row that counts it.
func TestAFloodOfDenialsIsCountedInFewRows(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	w.plane.denialRate.Reserve()
	const own, requests = 5, 120
	w.plane.floodRate = rate.NewLimiter(rate.Every(time.Hour), own)
	for range cap(w.plane.waiters) {
		w.plane.waiters <- struct{}{}
	}
	ids := map[string]int{}
	began := time.Now()
	for i := range requests {
		target, want := "http://other.example/", ReasonHost
		if i%4 == 0 {
			target, want = "https://api.good.example/nothing", "operation_not_matched"
		}
		res, body := w.do("GET", target, "")
		if _, why := reason(t, body); res.StatusCode != http.StatusForbidden || why != want {
			t.Fatalf("%s: %d %s", target, res.StatusCode, why)
		}
		var refusal struct {
			Error struct {
				AuditID string `json:"audit_id"`
			}
		}
		must.Do(t, json.Unmarshal([]byte(body), &refusal))
		ids[refusal.Error.AuditID]++
	}
	seen, counting := 0, 0
	rows := w.untilRows(func(rows []audit.Row) bool {
		seen, counting = 0, 0
		for _, r := range rows {
			n, counted := r.Fields["requests"].(float64)
			if !counted {
				seen++
				continue
			}
			seen += int(n)
			counting++
		}
		return seen == requests
	})
	if most := int(time.Since(began)/time.Second) + 1; counting == 0 || counting > most || len(rows)-counting != own {
		t.Errorf("%d refusals are visible in %d rows, %d of which count", seen, len(rows), counting)
	}
	for _, r := range rows {
		want := 1
		if n, counted := r.Fields["requests"].(float64); counted {
			want = int(n)
			named := Reason(r.Reason) == ReasonHost || r.Reason == "operation_not_matched"
			if r.Decision != audit.DecisionRejected || !named || r.Fields["reasons"] == nil || r.Status != 403 {
				t.Errorf("a row that counts: %+v", r)
			}
		}
		if ids[r.ID] != want {
			t.Errorf("%d answers name the row %+v, want %d", ids[r.ID], r, want)
		}
	}
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Errorf("what is allowed gets %d %s", res.StatusCode, body)
	}
}

// A refusal after the intent is the outcome that the intent waits for.
func TestADenialAfterTheIntentIsNotCounted(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "unheard-of")
		_, _ = rw.Write([]byte("what cannot be searched"))
	})
	w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	w.plane.denialRate.Reserve()
	w.plane.floodRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	w.plane.floodRate.Reserve()
	for range cap(w.plane.waiters) {
		w.plane.waiters <- struct{}{}
	}
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != http.StatusNotAcceptable {
		t.Fatalf("got %d %s", res.StatusCode, body)
	}
	rows := w.rows()
	if len(rows) != 2 || Reason(rows[1].Reason) != ReasonEncoding ||
		rows[1].Fields["request_id"] != rows[0].Fields["request_id"] {
		t.Errorf("rows %+v", rows)
	}
}

// The duration of an exchange is in microseconds, and lasts until its end.
func TestTheDurationOfAnExchangeIsInItsRow(t *testing.T) {
	const least = 30 * time.Millisecond
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		timer := time.NewTimer(least)
		defer timer.Stop()
		<-timer.C
		_, _ = rw.Write([]byte("late"))
	})
	began := time.Now()
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Fatalf("got %d %s", res.StatusCode, body)
	}
	rows := w.untilRows(func(rows []audit.Row) bool { return len(rows) == 2 })
	most := time.Since(began)
	if got := time.Duration(rows[1].DurationUS) * time.Microsecond; got < least || got > most {
		t.Errorf("duration_us is %d; the exchange took between %v and %v", rows[1].DurationUS, least, most)
	}
	if rows[0].DurationUS != 0 {
		t.Errorf("duration_us of the intent is %d", rows[0].DurationUS)
	}
}
