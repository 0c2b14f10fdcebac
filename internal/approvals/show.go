package approvals

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// agentMark begins each line that has what an agent wrote. No line of aileron's begins with it.
const agentMark = "  | "

const (
	maxShownValue = 2000 // of a value, in bytes
	maxBodyLine   = 500
	maxBodyLines  = 200
)

// Show prints a question for a person: first what aileron knows, then what the agent wrote, each line of which is
// marked.
func Show(out io.Writer, q approval.Question) error {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-12s %s\n", name+":", termsafe.Line(value)) }
	line("id", q.ID)
	line("state", stateText(q))
	line("session", q.SessionID+" of "+cmp.Or(q.Agent, "-"))
	line("requested", q.Requested.Local().Format(time.DateTime))
	if op := strings.TrimSpace(q.Tool + " " + q.Operation); op != "" {
		line("operation", op)
		line("connector", strings.TrimSpace(q.Connector+" "+q.Version))
	} else {
		line("operation", "none: no connector names the host")
	}
	line("credential", cmp.Or(q.Binding, "none"))
	line("host", hostOf(q.Request))
	line("method", q.Method)
	b.WriteString("what the agent asks for:\n")
	agent := func(name, value string) {
		fmt.Fprintf(&b, "%s%s%s\n", agentMark, termsafe.Line(name), termsafe.Line(review.Cut(value, maxShownValue)))
	}
	agent("path: ", q.Path)
	if q.Query != "" {
		agent("query: ", q.Query)
	}
	for _, in := range q.Inputs {
		agent(in.In+" ", in.Name+" = "+in.Value)
	}
	for _, f := range q.Fields {
		agent("header ", f.Name+": "+f.Value)
	}
	showBody(&b, q.Request)
	_, err := io.WriteString(out, b.String())
	return err
}

// hostOf returns the host of a request with a port that is not usual.
func hostOf(r approval.Request) string {
	if r.Scheme == "https" && r.Port == 443 || r.Port == 0 {
		return r.Host
	}
	return r.Scheme + "://" + net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
}

// stateText returns the state of a question in words.
func stateText(q approval.Question) string {
	switch {
	case q.State == approval.Pending && q.Waiting > 1:
		return fmt.Sprintf("pending, %d equal requests wait; an approval for once lets one pass", q.Waiting)
	case q.State == approval.Pending && q.Waiting == 0:
		return "pending; no request waits at the moment, the agent has to send it again"
	case q.Used:
		return "approved, and used"
	case q.Surface != "":
		return fmt.Sprintf("%s for %s (%s)", q.State, q.For, q.Surface)
	}
	return string(q.State)
}

// showBody prints the beginning of a body.
func showBody(b *strings.Builder, r approval.Request) {
	switch {
	case r.BodyBytes == 0 && !r.Streams:
		return
	case len(r.Body) == 0 && r.BodySHA256 != "": // decided, so it is not kept
		fmt.Fprintf(b, "its body, %d bytes (sha256 %s), is not kept\n", r.BodyBytes, r.BodySHA256)
		return
	case r.BodyBytes < 0:
		fmt.Fprintf(b, "its body, of unknown length, of which %d bytes are known:\n", len(r.Body))
	case int64(len(r.Body)) < r.BodyBytes:
		fmt.Fprintf(b, "its body, %d bytes, of which you see the first %d (sha256 %s):\n", r.BodyBytes, len(r.Body),
			cmp.Or(r.BodySHA256, "not known"))
	default:
		fmt.Fprintf(b, "its body, %d bytes (sha256 %s):\n", r.BodyBytes, r.BodySHA256)
	}
	if !utf8.Valid(r.Body[:max(0, len(r.Body)-utf8.UTFMax)]) || bytes.IndexByte(r.Body, 0) >= 0 {
		fmt.Fprintf(b, "%s(not text)\n", agentMark)
	}
	lines := 0
	for text := range strings.Lines(string(r.Body)) {
		text = strings.TrimSuffix(text, "\n")
		for first := true; first || text != ""; first = false {
			if lines++; lines > maxBodyLines {
				b.WriteString("the rest is not shown; --json has it\n")
				return
			}
			n := min(len(text), maxBodyLine)
			for n < len(text) && n > maxBodyLine-utf8.UTFMax && !utf8.RuneStart(text[n]) {
				n--
			}
			fmt.Fprintf(b, "%s%s\n", agentMark, termsafe.Line(text[:n]))
			text = text[n:]
		}
	}
}

// What returns what a question is about: its id, and words of the connector alone.
func What(q approval.Question) string {
	return q.ID + " " + cmp.Or(termsafe.Line(strings.TrimSpace(q.Tool+" "+q.Operation)), "a request of no operation")
}

// Decided returns what was decided.
func Decided(q approval.Question) string {
	text := string(q.State) + " " + What(q)
	switch {
	case q.For == approval.Session:
		return text + " for the session"
	case q.For == approval.Always:
		return text + " always, for this version of the connector and this credential"
	case q.State == approval.Approved && q.Waiting == 0:
		return text + " once; it passes when the agent sends it again within ten minutes"
	}
	return text + " once"
}
