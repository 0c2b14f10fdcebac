package auditpage

import (
	"net/http"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// maxSessions is the number of sessions that are shown at once.
const maxSessions = 100

// sessionLine is a session in the list of sessions.
type sessionLine struct {
	Seq     int64      `json:"seq"` // of session.started
	ID      string     `json:"id"`
	Agent   string     `json:"agent,omitempty"`
	Mode    string     `json:"mode,omitempty"`
	Sealed  bool       `json:"sealed"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Cause   string     `json:"cause,omitempty"`
	Exit    *int       `json:"exit,omitempty"`
	EndSeq  int64      `json:"end,omitempty"`
}

// started responds with the newest maxSessions sessions whose first row the query selects, newest first.
func (p *Page) started(w http.ResponseWriter, r *http.Request) error {
	l, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	defer done()
	filter.Event, filter.Limit, filter.Newest = audit.EventSessionStarted, maxSessions, true
	list := []*sessionLine{}
	byID := map[string]*sessionLine{}
	err = l.Each(r.Context(), filter, func(row audit.Row) error {
		field := func(name string) string { s, _ := row.Fields[name].(string); return bounded(s, maxText) }
		s := &sessionLine{Seq: row.Seq, ID: bounded(row.SessionID, maxText), Agent: field("agent"), Mode: field("mode"),
			Started: row.TS}
		s.Sealed, _ = row.Fields["sealed"].(bool)
		list = append(list, s)
		byID[row.SessionID] = s
		return nil
	})
	if err != nil {
		return err
	}
	if len(list) > 0 {
		// Sessions end in about the order in which they began.
		ends := audit.Filter{Event: audit.EventSessionEnded, AfterSeq: list[0].Seq, Limit: 8 * maxSessions}
		err = l.Each(r.Context(), ends, func(row audit.Row) error { byID[row.SessionID].end(row); return nil })
	}
	slices.Reverse(list)
	if err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"sessions": list})
}

// end records how the session ended; nil is a session that is not in the list.
func (s *sessionLine) end(row audit.Row) {
	if s == nil {
		return
	}
	s.Ended, s.EndSeq, s.Reason = &row.TS, row.Seq, bounded(row.Reason, maxText)
	cause, _ := row.Fields["cause"].(string)
	s.Cause = bounded(cause, maxText)
	if code, ok := row.Fields["exit_code"].(float64); ok {
		exit := int(code)
		s.Exit = &exit
	}
}
