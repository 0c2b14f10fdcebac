package review

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// MaxRowText bounds what a line has of a row, in bytes: audit show has all of it.
const MaxRowText = 4096

// DecisionText returns what became of an event's request, or the event if it is about none.
func DecisionText(r audit.Row) string {
	switch {
	case r.Event == audit.EventProxyStarted:
		return "started"
	case r.Decision == "":
		return string(r.Event)
	}
	return string(r.Decision)
}

// StatusText returns the status of a response, or "" if there is none.
func StatusText(r audit.Row) string {
	if r.Status == 0 {
		return ""
	}
	return strconv.Itoa(r.Status)
}

// Detail returns what an event is about, its operation, its reason and what it counts.
func Detail(r audit.Row) string {
	line := Subject(r)
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
	return Cut(line, MaxRowText)
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

// ByteText returns how much was sent and received, or "" if nothing was.
func ByteText(r audit.Row) string {
	if r.RequestBytes == 0 && r.ResponseBytes == 0 {
		return ""
	}
	return ByteCount(r.RequestBytes) + "/" + ByteCount(r.ResponseBytes)
}

// ByteCount returns a number of bytes in at most four characters.
func ByteCount(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	value := float64(n)
	for _, unit := range "kMGTPE" {
		switch value /= 1000; {
		case value < 9.95:
			return fmt.Sprintf("%.1f%c", value, unit)
		case value < 999.5:
			return fmt.Sprintf("%.0f%c", value, unit)
		}
	}
	return ">1E"
}

// MilliText returns the duration of a request in milliseconds, or "" if it has none.
func MilliText(us int64) string {
	switch {
	case us <= 0:
		return ""
	case us < 10_000:
		return strconv.FormatFloat(float64(us)/1000, 'f', 1, 64)
	}
	return strconv.FormatInt(us/1000, 10)
}
