package approvals

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// Author is who wrote a line that [Show] prints.
type Author string

// The authors. What a service says may repeat what an agent wrote, and is trusted no more.
const (
	Own     Author = "own"
	Agent   Author = "agent"
	Service Author = "service"
)

// marks are those of what others wrote: of a line, and of what follows of one that is too long. No line of aileron's
// begins with one.
var marks = map[Author]struct{ line, more string }{Agent: {"  | ", "  |+"}, Service: {"  > ", "  >+"}}

// markWidth is the width of a mark.
const markWidth = 4

// Unmark returns a line that [Show] printed without its mark, who wrote it, and whether it continues the line before.
func Unmark(line string) (words string, by Author, more bool) {
	for by, mark := range marks {
		if words, more = strings.CutPrefix(line, mark.more); more {
			return words, by, true
		}
		if words, is := strings.CutPrefix(line, mark.line); is {
			return words, by, false
		}
	}
	return line, Own, false
}

// maxColumns is the most that a line of an agent's has, so that a terminal does not fold it where there is no mark.
const maxColumns = 80

// Show prints a question for a person: first what aileron knows, then what the agent wrote, each line of which is
// marked. columns is the width of the terminal, 0 if there is none.
func Show(out io.Writer, q approval.Question, columns int) error {
	if columns == 0 || columns > maxColumns {
		columns = maxColumns
	}
	p := &printer{cells: max(columns-markWidth-1, 8)}
	p.line("id", q.ID)
	p.line("state", stateText(q))
	p.line("session", q.SessionID+" of "+cmp.Or(q.Agent, "-"))
	p.line("requested", q.Requested.Local().Format(time.DateTime))
	if op := strings.TrimSpace(q.Tool + " " + q.Operation); op != "" {
		p.line("operation", op)
		p.line("connector", strings.TrimSpace(q.Connector+" "+q.Version))
		p.line("covers", cmp.Or(q.Covers, "-"))
	} else {
		p.line("operation", "none: no connector names the host")
	}
	p.line("credential", cmp.Or(q.Binding, "none"))
	p.line("host", hostOf(q.Request))
	if q.WebSocket {
		p.line("opens", "a connection (WebSocket): what is sent on it later is not shown")
	}
	if q.Budget != "" {
		p.line("budget", q.Budget)
	}
	if q.Asks != "" {
		p.line("asks for", q.Asks)
	}
	p.preview(q.Preview)
	p.own("what the agent asks for:")
	p.agent(q.Method + " " + q.Path)
	if q.Query != "" {
		p.agent("query: " + q.Query)
	}
	for _, in := range q.Inputs {
		p.agent(in.In + " " + in.Name + " = " + in.Value)
	}
	for _, f := range q.Fields {
		p.agent("header " + f.Name + ": " + f.Value)
	}
	p.body(q)
	_, err := io.WriteString(out, p.String())
	return err
}

// printer prints lines of aileron's and of an agent's.
type printer struct {
	strings.Builder
	cells int // of a line of an agent's, without its mark
}

func (p *printer) line(name, value string) {
	fmt.Fprintf(p, "%-12s %s\n", name+":", termsafe.Line(value))
}

func (p *printer) own(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// agent prints what an agent wrote.
func (p *printer) agent(text string) { p.marked(Agent, text) }

// marked prints what another wrote, in as many lines as it takes.
func (p *printer) marked(by Author, text string) {
	mark, rest := marks[by].line, []rune(termsafe.Line(text))
	for first := true; first || len(rest) > 0; first = false {
		// No more characters than cells: those that combine take none.
		n := min(max(console.Fitting(rest, p.cells), 1), p.cells, len(rest))
		p.own("%s%s", mark, string(rest[:n]))
		mark, rest = marks[by].more, rest[n:]
	}
}

// preview prints what the service says of a request.
func (p *printer) preview(v *approval.Preview) {
	if v == nil {
		return
	}
	name := termsafe.Line(v.Tool + " " + v.Operation)
	if v.Problem != "" {
		p.own("no preview (%s): %s", name, termsafe.Line(v.Problem))
		if v.Differs != "" {
			p.own("that is not of what the request names: %s", termsafe.Line(v.Differs))
		}
		return
	}
	p.own("what the service says (%s); an agent may have written parts of it:", name)
	for _, value := range v.Values {
		prefix := ""
		if value.Name != "" {
			prefix = value.Name + ": "
		}
		for text := range strings.Lines(value.Value) {
			p.marked(Service, prefix+strings.TrimSuffix(text, "\n"))
			prefix = strings.Repeat(" ", min(len(prefix), 2))
		}
		if value.Value == "" {
			p.marked(Service, prefix)
		}
	}
	if v.Differs != "" {
		p.own("that is not of what the request names: %s", termsafe.Line(v.Differs))
	}
	if v.Cut {
		p.own("it says more, which is not shown")
	}
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

// Unseen returns what of a request a person cannot see; "": they see all of it.
func Unseen(q approval.Question) string {
	coded := slices.ContainsFunc(q.Fields, func(f approval.Value) bool {
		return f.Name == "Content-Encoding" && !strings.EqualFold(f.Value, "identity")
	})
	switch hidden := q.BodyBytes - int64(len(q.Body)); {
	case q.Streams:
		return fmt.Sprintf("its body is longer than %d bytes, and what follows them may still be chosen", len(q.Body))
	case hidden > 0 && q.State == approval.Pending:
		return fmt.Sprintf("%d bytes of its body are not shown", hidden)
	case coded && len(q.Body) > 0:
		return "its body is encoded (Content-Encoding)"
	case !isText(q.Body):
		return "its body is not text"
	case q.Preview != nil && q.Preview.Differs != "":
		return "what the service says is not of what the request names: " + q.Preview.Differs
	}
	return ""
}

func isText(body []byte) bool {
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		if r == utf8.RuneError && n == 1 && len(body) >= utf8.UTFMax || r == 0 { // the end may be cut
			return false
		}
		body = body[n:]
	}
	return true
}

// body prints the beginning of a body, and what of the request is not shown.
func (p *printer) body(q approval.Question) {
	switch {
	case q.BodyBytes == 0 && !q.Streams:
		return
	case len(q.Body) == 0 && q.State != approval.Pending:
		p.own("its body, %d bytes (sha256 %s), is not kept", q.BodyBytes, q.BodySHA256)
		return
	case q.BodyBytes < 0:
		p.own("its body, of unknown length:")
	default:
		p.own("its body, %d bytes (sha256 %s):", q.BodyBytes, cmp.Or(q.BodySHA256, "not known"))
	}
	for text := range strings.Lines(string(q.Body)) {
		p.agent(strings.TrimSuffix(text, "\n"))
	}
	if unseen := Unseen(q); unseen != "" {
		p.own("NOT SHOWN: %s", unseen)
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
