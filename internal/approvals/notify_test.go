package approvals

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/spec"
)

// hostile is a question whose agent wrote all that it can.
func hostile() approval.Question {
	const evil = "$(touch pwned)`touch pwned`\n\x1b]0;approved\a--help"
	return approval.Question{ID: "01KB", Agent: "claude\x1b[2J", Request: approval.Request{
		Subject: approval.Subject{Tool: "x", Operation: "merge"}, Method: "POST", Host: evil, Path: evil, Query: evil,
		Inputs: []approval.Value{{Name: evil, Value: evil}}, Body: []byte(evil)}}
}

// What is said of a request has nothing of the agent's, is one argument, and meets no shell.
func TestANotificationHasNothingOfTheAgents(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "notify")
	text := "#!/bin/sh\nprintf '%s|' \"$@\" >>" + dir + "/said\n"
	must.Do(t, os.WriteFile(script, []byte(text), 0o700))
	var lines []string
	n := NewNotifier(Notifier{Command: []string{script, "aileron"}, Environ: NewEnviron([]string{"A=b"}),
		Line: func(text string) { lines = append(lines, text) }, Warn: func(err error) { t.Error(err) }})
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	n.Opened(hostile())
	run.Go(func() { n.Run(ctx) })
	var said []byte
	for until := time.Now().Add(must.Patience(time.Minute)); len(said) == 0 && time.Now().Before(until); {
		<-time.After(10 * time.Millisecond)
		said, _ = os.ReadFile(filepath.Join(dir, "said"))
	}
	stop()
	run.Wait()
	const want = `x merge of claude\u001b[2J waits for your approval: aileron approval show 01KB`
	if string(said) != "aileron|"+want+"|" || len(lines) != 1 || lines[0] != want {
		t.Errorf("said %q and %q", said, lines)
	}
	if strings.IndexFunc(string(said), termsafe.Unsafe) >= 0 {
		t.Error("a control character is in it")
	}
}

// A command that hangs, fails or is missing holds up nothing, and is told of once.
func TestANotifierHoldsUpNothing(t *testing.T) {
	var mu sync.Mutex
	var warned []string
	n := NewNotifier(Notifier{Command: []string{"/no/such/program"}, Warn: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		warned = append(warned, err.Error())
	}})
	for range 10 * approval.MaxOpen { // nothing runs yet: none of these may block
		n.Opened(hostile())
	}
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { n.Run(ctx) })
	is := func() int { mu.Lock(); defer mu.Unlock(); return len(warned) }
	for until := time.Now().Add(must.Patience(time.Minute)); is() == 0 && time.Now().Before(until); {
		<-time.After(time.Millisecond)
	}
	stop()
	run.Wait()
	if len(warned) != 1 || !strings.Contains(warned[0], "/no/such/program") {
		t.Errorf("warned of %q", warned)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, method, host, path string
		want                        bool
	}{
		{"POST *", "POST", "a.example", "/x/y", true},
		{"POST *", "GET", "a.example", "/x", false},
		{"* /v1/*", "DELETE", "a.example", "/v1/x", true},
		{"* /v1/*", "DELETE", "a.example", "/v2/x", false},
		{"PUT /a/*/b", "PUT", "a.example", "/a/x/y/b", true},
		{"PUT /a/*/b", "PUT", "a.example", "/a/b", false},
		{"PUT /a*a", "PUT", "a.example", "/a", false},
		{"PUT /a", "PUT", "a.example", "/a/", false},
		{"DELETE b.example/v1/*", "DELETE", "a.example", "/v1/x", false},
		{"DELETE B.example/v1/*", "DELETE", "b.example", "/v1/x", true},
		{"DELETE *.example.com/*", "DELETE", "x.example.com", "/v1/x", true},
		{"DELETE b.example", "DELETE", "b.example", "/v1/x", true},
	} {
		p := must.Get(ParsePattern(c.pattern))(t)
		got := p.Covers(spec.Target{Host: c.host, Port: 443, Method: c.method, Path: c.path}, nil, false)
		if got != c.want || p.String() != c.pattern {
			t.Errorf("%q covers %s %s%s: %t", c.pattern, c.method, c.host, c.path, got)
		}
	}
	// In doubt a person is asked.
	const anyMethod = "X-Http-Method-Override"
	p := must.Get(ParsePattern("DELETE a.example/v1/*"))(t)
	at := func(method, path, query string, port uint16) spec.Target {
		return spec.Target{Host: "a.example", Port: port, Method: method, Path: path, Query: query}
	}
	for name, covered := range map[string]bool{
		"as it is":         p.Covers(at("DELETE", "/v1/x", "", 443), nil, false),
		"another port":     p.Covers(at("DELETE", "/v1/x", "", 80), nil, false),
		"lower case":       p.Covers(at("delete", "/v1/x", "", 443), nil, false),
		"a doubtful path":  p.Covers(at("DELETE", "/./v1/x", "", 443), nil, true),
		"an override":      p.Covers(at("POST", "/v1/x", "", 443), http.Header{anyMethod: {"DELETE"}}, false),
		"one in the query": p.Covers(at("POST", "/v1/x", "_method=DELETE", 443), nil, false),
	} {
		if !covered {
			t.Errorf("%s: a person is not asked", name)
		}
	}
	if p.Covers(spec.Target{Host: "b.example", Port: 443, Method: "DELETE", Path: "/./v1/x"}, nil, true) {
		t.Error("another host is covered")
	}
	for _, text := range []string{"", "POST", "POST ", " /x", "post /x", "POST /x y", "POST /x?y", "POST 127.0.0.1/x",
		"POST https://a.example/x", "POST /é", "POST /x\x1b", "P;T /x"} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("%q is a pattern: %+v", text, p)
		}
	}
}
