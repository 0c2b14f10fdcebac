package approvals

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// isInForce reports whether a question waits, or its decision has an effect on requests to come.
func isInForce(q approval.Question) bool {
	return q.State == approval.Pending || q.State != approval.Expired && !q.Used && q.Decided != nil
}

// InForce returns the questions that wait, and those whose decision has an effect on requests to come. It is not nil.
func InForce(all []approval.Question) []approval.Question {
	open := []approval.Question{}
	for _, q := range all {
		if isInForce(q) {
			open = append(open, q)
		}
	}
	return open
}

// News returns the questions whose state is not the one that seen has, and remembers it. Of those that are new, it is
// the ones in force.
func News(all []approval.Question, seen map[string]approval.State) (news []approval.Question) {
	for _, q := range all {
		was, known := seen[q.ID]
		if seen[q.ID] = q.State; was != q.State && (known || isInForce(q)) {
			news = append(news, q)
		}
	}
	return news
}

// maxRequest bounds a request in a list, in characters.
const maxRequest = 60

// plain returns a request with what is not plain ASCII, and a blank in its path, as in a URL.
func plain(text string) string {
	method, rest, _ := strings.Cut(text, " ")
	var out strings.Builder
	for _, c := range []byte(rest) {
		if c <= ' ' || c > '~' {
			fmt.Fprintf(&out, "%%%02X", c)
			continue
		}
		out.WriteByte(c)
	}
	return method + " " + out.String()
}

// Heads are the names of the columns of a list.
var Heads = []string{"id", "state", "for", "session", "operation", "request"}

// Cells returns the cells of a question. What an agent chose is in the last one, escaped and cut, and behind it, after
// a mark that a request cannot have, what the service says of it.
func Cells(q approval.Question, now time.Time) []string {
	state := string(q.State)
	switch {
	case q.State == approval.Pending:
		state += " " + now.Sub(q.Requested).Round(time.Second).String()
	case q.Used:
		state = "used"
	}
	session := "-"
	if q.SessionID != "" {
		session = strings.TrimSpace(review.ShortSession(q.SessionID) + " " + q.Agent)
	}
	what := plain(q.Method + " " + hostOf(q.Request) + q.Path)
	if q.For == approval.Always || q.For == approval.Session {
		what = q.Connector + " " + q.Version + ", " + cmp.Or(q.Binding, "without a credential")
	}
	cells := []string{q.ID, state, cmp.Or(string(q.For), "-"), session,
		cmp.Or(strings.TrimSpace(q.Tool+" "+q.Operation), "-"), review.Cut(what, maxRequest) + said(q.Preview)}
	for i := range cells {
		cells[i] = termsafe.Line(cells[i])
	}
	return cells
}

// maxSaid bounds what a service says in a list, in characters.
const maxSaid = 60

// said returns what a service says of a request in one line, with a mark before it; "" if that was not fetched.
func said(p *approval.Preview) string {
	if p == nil {
		return ""
	}
	if p.Problem != "" {
		return "  (no preview)"
	}
	var parts []string
	for _, v := range p.Values {
		text := strings.Join(strings.Fields(v.Value), " ")
		if v.Name != "" {
			text = v.Name + ": " + text
		}
		parts = append(parts, text)
	}
	return "  > " + review.Cut(termsafe.Line(strings.Join(parts, "; ")), maxSaid)
}
