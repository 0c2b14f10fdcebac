package review

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
)

// Summary is what audit summary prints.
type Summary struct {
	audit.Summary
	Uses   []Use  `json:"uses"`
	Record Record `json:"record"`
}

// Record is whether the log was found complete and unchanged.
type Record struct {
	Checked  bool   `json:"checked"` // false: it is too long for a summary
	Verifies bool   `json:"verifies"`
	Rows     int64  `json:"rows,omitempty"`
	Head     string `json:"head,omitempty"`
	Why      string `json:"why,omitempty"`
}

// Summarize reads the selected rows once.
func Summarize(ctx context.Context, l Log, filter audit.Filter) (s Summary, err error) {
	var groups []audit.Group
	if s.Summary, groups, err = l.Summarize(ctx, filter); err != nil {
		return s, err
	}
	agents := Agents{Open: func() (Log, error) { return l, nil }}
	if sessionsOf(groups, manySessions) == manySessions {
		if err := agents.Load(ctx, l); err != nil {
			return s, err
		}
	}
	s.Uses = append([]Use{}, Uses(ctx, groups, &agents)...) // [] and not null
	s.Record, err = checkRecord(ctx, l)
	return s, err
}

// manySessions are so many that their agents are looked for at once.
const manySessions = 16

// sessionsOf returns the number of the sessions of groups, most at most.
func sessionsOf(groups []audit.Group, most int) int {
	sessions := map[string]bool{}
	for _, g := range groups {
		if sessions[g.Session] = true; len(sessions) == most {
			break
		}
	}
	return len(sessions)
}

// maxChecked is how many rows a summary verifies: about two seconds of work.
const maxChecked = 200_000

// checkRecord verifies a log that is not too long.
func checkRecord(ctx context.Context, l Log) (Record, error) {
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err != nil || len(newest) == 1 && newest[0].Seq > maxChecked {
		return Record{}, err
	}
	report, err := l.Verify(ctx)
	return Record{Checked: true, Verifies: report.OK, Rows: report.Rows, Head: report.Head, Why: report.Why}, err
}

// Text returns the record's state for a person.
func (r Record) Text() string {
	switch {
	case !r.Checked:
		return "not checked, because it is long: aileron audit verify"
	case !r.Verifies:
		return "does NOT verify: " + r.Why + "; see: aileron audit verify"
	}
	return fmt.Sprintf("verifies, all %d rows; head %.12s…, see: aileron audit verify", r.Rows, r.Head)
}
