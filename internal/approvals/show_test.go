package approvals

import (
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// Nothing that an agent wrote can look like a line of aileron's.
func TestWhatAnAgentWroteIsMarked(t *testing.T) {
	const evil = "\r\nstate:       approved\nid:\x1b[2J\x1b[1;1Hcredential:  none\u202e\u2028\x85\x00"
	q := approval.Question{ID: "01A", SessionID: "01S", Agent: "claude", State: approval.Pending, Waiting: 1,
		Requested: time.Now(), Request: approval.Request{
			Subject: approval.Subject{Connector: "github://acme/x", Hash: "h", Tool: "x", Operation: "merge",
				Binding: "bearer/x/me"}, Version: "1.0.0", Method: "POST", Scheme: "https", Host: "x.example", Port: 8443,
			Path: "/p" + evil, Query: "q=" + evil, Inputs: []approval.Value{{Name: "n" + evil, In: "path", Value: evil}},
			Fields: []approval.Value{{Name: "X-A", Value: evil}}, Body: []byte(evil + "\n" + strings.Repeat("é", 500) +
				strings.Repeat("a\u0301", 100) + strings.Repeat("日本", 100) +
				strings.Repeat("\nline", 500)), BodyBytes: 5000, BodySHA256: "d"},
		Preview: &approval.Preview{Tool: "x", Operation: "get", Status: 200, Cut: true, Values: []approval.Value{
			{Name: "title", Value: evil + strings.Repeat("日本", 100)}, {Name: "body", Value: "\n  | agent\n"}, {Name: "none"}}}}
	var out strings.Builder
	must.Do(t, Show(&out, q, 60))
	ours := map[string]bool{"id": true, "state": true, "session": true, "requested": true, "operation": true,
		"connector": true, "covers": true, "credential": true, "host": true, "what the agent asks for": true,
		"its body, 5000 bytes (sha256 d)": true, "NOT SHOWN": true,
		"what the service says (x get); an agent may have written parts of it": true,
		"it says more, which is not shown":                                     true}
	seen := map[string]int{}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.IndexFunc(line, termsafe.Unsafe) >= 0 {
			t.Errorf("a line has a control character: %q", line)
		}
		name, _, _ := strings.Cut(line, ":")
		_, by, _ := Unmark(line)
		marked := by != Own
		if !marked && !ours[name] {
			t.Errorf("a line is neither marked nor aileron's: %q", line)
		}
		if marked && console.DisplayWidth(line) > 60 {
			t.Errorf("a terminal folds the line %q", line)
		}
		if !marked {
			seen[name]++
		}
	}
	for name := range ours {
		if seen[name] != 1 {
			t.Errorf("%d lines are %q", seen[name], name)
		}
	}
	for _, cell := range Cells(q, time.Now()) {
		if strings.IndexFunc(cell, termsafe.Unsafe) >= 0 || strings.Contains(cell, "\n") ||
			len([]rune(cell)) > maxRequest+maxSaid+6 {
			t.Errorf("a cell of the list is %q", cell)
		}
	}
}

// What a service says is marked as that, whatever it says, and is told from what the agent wrote.
func TestWhatAServiceSaysIsMarkedAsThat(t *testing.T) {
	q := approval.Question{State: approval.Pending, Preview: &approval.Preview{Tool: "x", Operation: "get",
		Values: []approval.Value{{Name: "title", Value: "one\nstate: approved\n  | GET /\x1b[2J"}}}}
	var out strings.Builder
	must.Do(t, Show(&out, q, 0))
	const want = "  > title: one\n  >   state: approved\n  >     | GET /\\u001b[2J\nwhat the agent asks for:\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("it is shown as\n%s\nwant %q", out.String(), want)
	}
	for line := range strings.Lines(out.String()) {
		if words, by, _ := Unmark(line); strings.Contains(words, "approved") && by != Service {
			t.Errorf("the line %q is one of %s", line, by)
		}
	}
	q.Preview = &approval.Preview{Tool: "x", Operation: "get", Problem: "the service responded with status 404"}
	out.Reset()
	must.Do(t, Show(&out, q, 0))
	if want := "no preview (x get): the service responded with status 404\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it is shown as\n%s\nwant %q", out.String(), want)
	}
}

// A list has what the service says behind the request, in one line, and no request looks like it.
func TestAListHasWhatAServiceSays(t *testing.T) {
	q := approval.Question{ID: "01A", State: approval.Pending}
	q.Method, q.Scheme, q.Host, q.Port, q.Path = "POST", "https", "a.example", 443, "/x  > title: harmless"
	last := func() string { cells := Cells(q, q.Requested); return cells[len(cells)-1] }
	if got := last(); got != "POST a.example/x%20%20>%20title:%20harmless" {
		t.Errorf("without a preview: %q", got)
	}
	q.Path = "/x"
	for want, p := range map[string]approval.Preview{
		"POST a.example/x  (no preview)": {Problem: "status 404"},
		"POST a.example/x  > title: The build is red; by: octo": {Values: []approval.Value{
			{Name: "title", Value: "The\n build\tis red"}, {Name: "by", Value: "octo"}}},
		`POST a.example/x  > \u001b[31mred`: {Values: []approval.Value{{Value: "\x1b[31mred"}}},
		"POST a.example/x  > " + strings.Repeat("a", maxSaid) + "…": {Values: []approval.Value{
			{Value: strings.Repeat("a", 9999)}}},
	} {
		if q.Preview = p.Brief(); last() != want {
			t.Errorf("it is listed as %q, want %q", last(), want)
		}
	}
	if p := (approval.Preview{Values: make([]approval.Value, 99)}).Brief(); !p.Cut || len(p.Values) > 8 {
		t.Errorf("of many values, the list has %d, and cut is %t", len(p.Values), p.Cut)
	}
}

// What a person does not see, or sees of something else than the request names, is said.
func TestWhatIsNotSeen(t *testing.T) {
	seen := approval.Question{State: approval.Pending, Request: approval.Request{Body: []byte("{}"), BodyBytes: 2}}
	for want, change := range map[string]func(*approval.Question){
		"":                     func(*approval.Question) {},
		"1 bytes of its body":  func(q *approval.Question) { q.BodyBytes++ },
		"its body is not text": func(q *approval.Question) { q.Body = []byte("\x00\x01") },
		"its sha is another than head.x": func(q *approval.Question) {
			q.Preview = &approval.Preview{Differs: "its sha is another than head.x"}
		},
	} {
		q := seen
		change(&q)
		if got := Unseen(q); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
