package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Line is one line of a story: what it is about, and a text that is not yet safe to print.
type Line struct{ Name, Text string }

// Lines returns the story, in the order in which things happened.
func (s Story) Lines() []Line {
	var lines []Line
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, Line{name, text})
		}
	}
	r := s.Row
	add("when", r.TS.Local().Format("Monday, 2006-01-02 15:04:05.000 MST (Z07:00)"))
	add("event", string(r.Event)+", row "+strconv.FormatInt(r.Seq, 10)+", "+r.ID)
	if r.SessionID != "" {
		add("session", strings.TrimSuffix(r.SessionID+" of "+s.Agent, " of "))
	}
	add("request", request(r))
	add("intent", s.intent())
	if r.Operation != "" {
		add("rule", r.Tool+" "+r.Operation)
	}
	add("connector", s.connector())
	if r.Binding != "" {
		add("credential", r.Binding+cmp.Or(s.Slot, ""))
	}
	add("stripped", names(r.Fields["dropped_headers"]))
	if r.Reason != "" && r.Decision == audit.DecisionRejected {
		add("refused", r.Reason)
	} else {
		add("reason", r.Reason)
	}
	add("why", s.Why)
	if r.Redactions > 0 {
		add("redacted", fmt.Sprintf("%d × a secret in the response", r.Redactions))
	}
	add("outcome", s.outcome())
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		if name != "request_id" && name != "dropped_headers" {
			add(name, fieldText(r.Fields[name]))
		}
	}
	return lines
}

// request returns what was asked for, or "" if the row is of no request.
func request(r audit.Row) string {
	if r.Method == "" && r.Host == "" {
		return ""
	}
	text := r.Method
	if r.Host != "" {
		text += " " + cmp.Or(r.Scheme, "?") + "://" + r.Host
		if r.Port != 443 && r.Port != 0 {
			text += ":" + strconv.Itoa(r.Port)
		}
		text += r.Path
	}
	if r.HTTPVersion != "" {
		text += ", " + r.HTTPVersion
	}
	if r.Source != "" {
		text += ", by " + string(r.Source)
	}
	return strings.TrimSpace(text)
}

// intent returns when the intent was recorded, for the row of an outcome.
func (s Story) intent() string {
	switch {
	case s.Row.Event == audit.EventProxyStarted:
		return "recorded by this row before anything was sent"
	case s.Intent != nil:
		return "recorded before anything was sent: " + s.Intent.ID + ", " + s.Row.TS.Sub(s.Intent.TS).String() + " before"
	case s.Row.Decision == audit.DecisionRejected:
		return "none: nothing was sent"
	}
	return ""
}

// connector returns the connector with its version and content hash.
func (s Story) connector() string {
	r := s.Row
	if r.ConnectorFQN == "" {
		return ""
	}
	text := strings.TrimSpace(r.ConnectorFQN + " " + r.ConnectorVersion)
	if s.HashSource != nil {
		text += ", " + s.ConnectorHash + " (by " + string(s.HashSource.Event) + " " + s.HashSource.ID + ")"
	}
	return text
}

// outcome returns what became of the request.
func (s Story) outcome() string {
	r := s.Row
	if r.Event == audit.EventProxyStarted {
		if s.Outcome == nil {
			return "none recorded: in progress, or of a session that was killed"
		}
		return outcomeText(*s.Outcome) + ": " + s.Outcome.ID
	}
	if r.Decision == "" && r.Event != audit.EventProxyUnknown {
		return ""
	}
	return outcomeText(r)
}

func outcomeText(r audit.Row) string {
	text := cmp.Or(string(r.Decision), "unknown: the session was killed")
	if r.Status != 0 {
		text += ", status " + strconv.Itoa(r.Status)
	}
	text += fmt.Sprintf(", %d bytes sent, %d received", r.RequestBytes, r.ResponseBytes)
	if r.DurationUS > 0 {
		text += ", in " + (time.Duration(r.DurationUS) * time.Microsecond).String()
	}
	return text
}

// names returns a list of names as a text.
func names(list any) string {
	all, _ := list.([]any)
	var text []string
	for _, name := range all {
		text = append(text, fmt.Sprint(name))
	}
	return strings.Join(text, ", ")
}

// fieldText returns the value of a field for a person.
func fieldText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		return names(v)
	}
	return fmt.Sprint(v)
}
