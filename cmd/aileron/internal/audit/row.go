package audit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

// MaxRowText bounds what a line has of a row, in bytes: audit show has all of it.
const MaxRowText = 4096

// decisionText returns what became of an event's request, or the event if it is about none.
func decisionText(r audit.Row) string {
	switch {
	case r.Event == audit.EventProxyStarted:
		return "started"
	case r.Decision == "":
		return string(r.Event)
	}
	return string(r.Decision)
}

// statusText returns the status of a response, or "" if there is none.
func statusText(r audit.Row) string {
	if r.Status == 0 {
		return ""
	}
	return strconv.Itoa(r.Status)
}

// detail returns what an event is about, its operation, its reason and what it counts.
func detail(r audit.Row) string {
	line := review.Subject(r)
	if r.Operation != "" {
		line += "  [" + r.Tool + " " + r.Operation + "]"
	}
	if r.Reason != "" {
		line += "  " + r.Reason
	}
	line += counted(r)
	if r.Redactions > 0 {
		line += fmt.Sprintf("  %d redacted", r.Redactions)
	}
	return review.Cut(line, MaxRowText)
}

// counted returns the number of connections or requests that one event stands for, or "".
func counted(r audit.Row) string {
	text := ""
	for _, what := range []string{"connections", "requests"} {
		if n, ok := r.Fields[what].(float64); ok {
			text = fmt.Sprintf("  %d %s", int64(n), what)
		}
	}
	if text == "" {
		return ""
	}
	if ports, _ := r.Fields["ports"].(string); ports != "" {
		text += ", ports " + ports
	}
	if hosts, _ := r.Fields["hosts"].([]any); r.Host == "" && len(hosts) > 0 {
		text += ", hosts " + strings.Trim(fmt.Sprint(hosts), "[]")
	}
	return text
}
