package review_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

func TestAMomentHasManyForms(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 30, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"2026-11-26":           "2026-11-26T00:00:00+01:00",
		"2026-11-26 14:30":     "2026-11-26T14:30:00+01:00",
		"2026-11-26T14:30:05Z": "2026-11-26T14:30:05Z",
		"today":                "2026-11-27T00:00:00+01:00",
		"yesterday":            "2026-11-26T00:00:00+01:00",
		"08:15":                "2026-11-27T08:15:00+01:00",
		"14:30":                "2026-11-26T14:30:00+01:00", // it is not yet half past two
		"10m":                  "2026-11-27T09:20:00+01:00",
		"2d":                   "2026-11-25T09:30:00+01:00",
	} {
		if at, err := review.ParseMoment(text, now); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v; want %s", text, at, err, want)
		}
	}
	for text, want := range map[string]string{
		"8": "it has no unit; write 8m, 8h or 8d for minutes, hours or days", "-5m": "a date such as",
		"tomorrow": "a date such as", "25:00": "a time of day", "2026-13-01": "a date such as",
	} {
		_, err := review.ParseMoment(text, now)
		if err == nil || !strings.Contains(err.Error()+"; "+hint.Of(err), want) {
			t.Errorf("%q: the error is %v, hint %q; want %q", text, err, hint.Of(err), want)
		}
	}
}
