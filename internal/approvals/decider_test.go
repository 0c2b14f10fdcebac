package approvals

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// A decider approves once, with its reason in the row, and only the request that it was asked about.
func TestADeciderApprovesOnce(t *testing.T) {
	b := newBench(t, `cat >"$dir/question"; pwd >"$dir/at"; echo "$1" >"$dir/word"
		printf '{"decision": "approve", "reason": "on the\\u001b[2J list\\n"}'`)
	b.run()
	first := b.ask(post("/1", "the body"))
	if got := b.decided(first); got != approval.Approved || !first.Use() {
		t.Fatalf("it is %s", got)
	}
	first.Leave()
	b.log("requested", `approved surface=decider for=once decider_reason=on the\u001b[2J list\u000a`)
	var q struct {
		ID, Method, Path, Operation, Digest string
		Body                                []byte
	}
	must.Do(t, json.Unmarshal([]byte(b.file("question")+"\n"), &q))
	if q.ID != first.ID() || q.Method != "POST" || q.Path != "/1" || q.Operation != "merge" ||
		string(q.Body) != "the body" || q.Digest == "" {
		t.Errorf("the question is %+v", q)
	}
	if at, word := b.file("at"), b.file("word"); at != "/" || word != "word" {
		t.Errorf("it runs in %s with %q", at, word)
	}
	if len(b.Rules()) != 0 || len(b.asked) != 0 {
		t.Errorf("the rules are %+v, and %d questions are the owner's", b.Rules(), len(b.asked))
	}
	again := b.ask(post("/1", "the body")) // the same request is a new question
	if again.ID() == first.ID() {
		t.Error("the approval counts twice")
	}
	if got := b.decided(again); got != approval.Approved {
		t.Errorf("the second one is %s", got)
	}
}

func TestADeciderDenies(t *testing.T) {
	b := newBench(t, `cat >/dev/null; echo '{"decision": "deny"}'`)
	b.run()
	if got := b.decided(b.ask(post("/1", ""))); got != approval.Denied {
		t.Errorf("it is %s", got)
	}
	b.log("requested", "denied surface=decider for=once")
}

// What is no valid answer in time decides nothing: the owner is asked, and the reason is there.
func TestADeciderThatFailsLeavesItToTheOwner(t *testing.T) {
	const ok = `{"decision": "approve"}`
	many := strings.Repeat("x", maxAnswer)
	for name, c := range map[string]struct{ script, why string }{
		"ask":             {`echo '{"decision": "ask", "reason": "not sure"}'`, "leaves it to you: not sure"},
		"silence":         {`exit 0`, "its answer is not one object"},
		"garbage":         {`echo approve`, "its answer is not one object"},
		"exit 1":          {`echo '` + ok + `'; exit 1`, "exit status 1"},
		"a signal":        {`echo '` + ok + `'; kill -9 $$`, "signal: killed"},
		"another id":      {`echo '{"decision": "approve", "id": "01KB"}'`, "its answer is not one object"},
		"always":          {`echo '{"decision": "approve", "for": "always"}'`, "its answer is not one object"},
		"a scope as word": {`echo '{"decision": "always"}'`, "its answer is not one object"},
		"two answers":     {`echo '` + ok + ok + `'`, "its answer is not one object"},
		"twice": {`echo '{"decision": "deny", "decision": "approve"}'`,
			"its answer is not one object"},
		"another case":  {`echo '{"Decision": "approve"}'`, "its answer is not one object"},
		"a list":        {`echo '["approve"]'`, "its answer is not one object"},
		"null":          {`echo null`, "its answer is not one object"},
		"half":          {`printf '{"decision": "approve"'`, "its answer is not one object"},
		"nested":        {`echo '{"decision": {"decision": "approve"}}'`, "its answer is not one object"},
		"no UTF-8":      {`printf '{"decision": "approve", "reason": "\377"}'`, "its answer is not one object"},
		"too long":      {`printf '{"decision": "approve", "reason": "` + many + `"}'`, "more than 4096 bytes"},
		"a flood":       {`exec yes '` + ok + `'`, "more than 4096 bytes"},
		"a flood later": {`echo '` + ok + `'; exec tr '\0' ' ' </dev/zero`, "more than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.script)
			b.run()
			ticket := b.ask(post("/1", strings.Repeat("b", approval.MaxShown))) // which no pipe takes at once
			if why := b.left(ticket); !strings.Contains(why, c.why) || strings.Contains(why, "\n") {
				t.Errorf("the owner is asked because %q, want %q", why, c.why)
			}
			b.log("requested")
			if warned := len(b.warns); warned != 1 && name != "ask" || warned > 1 {
				t.Errorf("warned of %q", b.warns)
			}
			_ = must.Get(b.Decide(t.Context(), ticket.ID(), approval.Decision{Approve: true, For: approval.Once,
				Surface: "cli"}))(t)
		})
	}
}

// What hangs is ended with all that it started, and the owner is asked.
func TestADeciderThatHangsIsEnded(t *testing.T) {
	b := newBench(t, `sleep 1000 & echo $! >"$dir/child"; setsid sh -c 'echo $$ >"$dir/left"; exec sleep 1000' >&2 &
		echo $$ >"$dir/self"; echo '{"decision": "approve"}'; wait`)
	b.by.timeout = 2 * time.Second
	b.run()
	ticket := b.ask(post("/1", ""))
	if why := b.left(ticket); !strings.Contains(why, "no answer within 2s") {
		t.Errorf("the owner is asked because %q", why)
	}
	b.ends(b.file("child"))
	b.ends(b.file("left"))
	b.ends(b.file("self"))
}

// A child that holds the output is ended with its parent, which has answered, also if it has left the group.
func TestAChildOfADeciderHoldsUpNothing(t *testing.T) {
	b := newBench(t, `sleep 1000 & echo $! >"$dir/child"; echo '{"decision": "approve"}'`)
	b.run()
	if got := b.decided(b.ask(post("/1", ""))); got != approval.Approved {
		t.Errorf("it is %s", got)
	}
	b.ends(b.file("child"))

	b = newBench(t, `setsid sh -c 'echo $$ >"$dir/child"; exec sleep 1000' & echo '{"decision": "approve"}'
		until [ -s "$dir/child" ]; do sleep 0.01; done`)
	b.run()
	if got := b.decided(b.ask(post("/1", ""))); got != approval.Approved {
		t.Errorf("with a child that has left its group, it is %s", got)
	}
	b.ends(b.file("child"))
}

// When the client leaves, or another surface decides, the program is ended.
func TestADeciderEndsWithItsQuestion(t *testing.T) {
	const hang = `echo $$ >"$dir/self"; exec sleep 1000`
	b := newBench(t, hang)
	b.run()
	ticket := b.ask(post("/1", ""))
	self := b.file("self")
	ticket.Leave()
	b.ends(self)
	if why := b.left(ticket); !strings.Contains(why, errGone.Error()) {
		t.Errorf("the owner is asked because %q", why)
	}
	if len(b.warns) != 0 {
		t.Errorf("warned of %q", b.warns)
	}

	b = newBench(t, hang)
	b.run()
	ticket = b.ask(post("/1", ""))
	self = b.file("self")
	_ = must.Get(b.Decide(t.Context(), ticket.ID(), approval.Decision{For: approval.Once, Surface: "cli"}))(t)
	b.ends(self)
	b.log("requested", "denied surface=cli for=once")
	if len(b.asked) != 0 {
		t.Errorf("the owner is asked about what they have decided: %s", <-b.asked)
	}
}

// Many questions are asked a few at a time, and none holds up the queue.
func TestDecidersAreFew(t *testing.T) {
	b := newBench(t, `echo $$ >>"$dir/began"; until [ -e "$dir/go" ]; do sleep 0.02; done; echo '{"decision": "approve"}'`)
	var tickets []*approval.Ticket
	for i := range approval.MaxOpen {
		tickets = append(tickets, b.ask(post("/"+strconv.Itoa(i), "")))
	}
	b.run()
	for strings.Count(b.file("began"), "\n") < maxDeciding-1 {
		<-time.After(5 * time.Millisecond)
	}
	<-time.After(200 * time.Millisecond) // for more, if there were more
	if n := strings.Count(b.file("began"), "\n") + 1; n != maxDeciding {
		t.Errorf("%d deciders run at a time", n)
	}
	must.Do(t, os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600))
	for _, ticket := range tickets {
		if got := b.decided(ticket); got != approval.Approved {
			t.Fatalf("one is %s", got)
		}
	}
}

// No secret is in a question, and what is not shown in full is not approved.
func TestADeciderSeesNoSecret(t *testing.T) {
	const secret = "s3cret"
	with := func(change func(*approval.Request)) approval.Request {
		r := post("/1", "")
		change(&r)
		return r
	}
	for name, r := range map[string]approval.Request{
		"body":    post("/1", "a "+secret),
		"path":    post("/"+secret, ""),
		"query":   with(func(r *approval.Request) { r.Query = "q=" + secret }),
		"asks":    with(func(r *approval.Request) { r.Asks = secret }),
		"field":   with(func(r *approval.Request) { r.Fields = []approval.Value{{Name: "X", Value: secret}} }),
		"input":   with(func(r *approval.Request) { r.Inputs = []approval.Value{{Name: secret}} }),
		"binary":  post("/1", "a\x00b"),
		"socket":  with(func(r *approval.Request) { r.WebSocket = true }),
		"too big": with(func(r *approval.Request) { r.Body, r.BodyBytes = []byte("beginning"), 1<<20 }),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `cat >"$dir/question"; echo '{"decision": "approve", "reason": "`+secret+`"}'`)
			b.by.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }
			b.run()
			ticket := b.ask(r)
			why := b.left(ticket)
			if !strings.Contains(why, "it approves what it was not shown in full: ") || strings.Contains(why, secret) {
				t.Errorf("the owner is asked because %q", why)
			}
			var q approval.Question
			raw := b.file("question")
			must.Do(t, json.Unmarshal([]byte(raw), &q))
			if !strings.Contains(raw, `"unseen":`) || strings.Contains(raw+string(q.Body), secret) {
				t.Errorf("the question is %s with the body %q", raw, q.Body)
			}
		})
	}
	b := newBench(t, `echo '{"decision": "deny", "reason": "`+secret+` `+strings.Repeat("x", 300)+`"}'`)
	b.by.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }
	b.run()
	if got := b.decided(b.ask(post("/1", "a "+secret))); got != approval.Denied {
		t.Errorf("it is %s", got)
	}
	b.log("requested", "denied surface=decider for=once decider_reason=[redacted] "+strings.Repeat("x", 188)+"…")
}

// serve answers at a unix socket until the test ends.
func (b *bench) serve(answer func(net.Conn)) {
	b.t.Helper()
	b.by.Command, b.by.Socket = nil, filepath.Join(b.dir, "socket")
	l := must.Get(unixsocket.Listen(b.by.Socket, 0o600))(b.t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); answer(conn) })
		}
	})
	b.t.Cleanup(func() { l.Close(); all.Wait() })
}

func TestADeciderAtASocket(t *testing.T) {
	b := newBench(t, "")
	var question []byte
	b.serve(func(conn net.Conn) {
		question, _ = io.ReadAll(conn)
		_, _ = io.WriteString(conn, `{"decision": "approve", "reason": "fine"}`)
	})
	b.run()
	if got := b.decided(b.ask(post("/1", ""))); got != approval.Approved || !json.Valid(question) {
		t.Errorf("it is %s, and the question %s", got, question)
	}
	b.log("requested", "approved surface=decider for=once decider_reason=fine")

	for name, c := range map[string]struct {
		why    string
		answer func(net.Conn)
	}{
		"silence": {"its answer is not one object", func(conn net.Conn) { _, _ = io.ReadAll(conn) }},
		"a flood": {"more than 4096 bytes", func(conn net.Conn) {
			for _, err := conn.Write(make([]byte, 1000)); err == nil; {
				_, err = conn.Write(make([]byte, 1000))
			}
		}},
		"hang": {"no answer within 2s", func(conn net.Conn) {
			_, _ = io.WriteString(conn, `{"decision": "approve"}`)
			_, _ = io.Copy(io.Discard, conn)
			for _, err := conn.Write([]byte(" ")); err == nil; { // until it is closed
				<-time.After(10 * time.Millisecond)
				_, err = conn.Write([]byte(" "))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "")
			b.serve(c.answer)
			if name == "hang" {
				b.by.timeout = 2 * time.Second
			}
			b.run()
			ticket := b.ask(post("/1", ""))
			if why := b.left(ticket); !strings.Contains(why, c.why) {
				t.Errorf("the owner is asked because %q, want %q", why, c.why)
			}
		})
	}
}

// A program that another user could replace is not asked, and its error names what to do.
func TestADeciderOfOthersIsNotAsked(t *testing.T) {
	for name, c := range map[string]struct {
		spoil     func(dir, program string) error
		why, hint string
	}{
		"as it is":   {func(string, string) error { return nil }, "", ""},
		"missing":    {func(_, p string) error { return os.Remove(p) }, "no such file", "install the decider"},
		"no program": {func(_, p string) error { return os.Chmod(p, 0o600) }, "is no executable file", "chmod u+x"},
		"a directory": {func(_, p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
			"is no executable file", "chmod u+x"},
		"open": {func(_, p string) error { return os.Chmod(p, 0o722) }, "could be changed by another user", "chmod go-w"},
		"in an open directory": {func(d, _ string) error { return os.Chmod(d, 0o777) }, "could be replaced by another user",
			"move it"},
		"in a directory of a group": {func(d, _ string) error { return os.Chmod(d, 0o770) },
			"could be replaced by another user", "move it"},
		"in a sticky directory": {func(d, _ string) error { return os.Chmod(d, 0o777|os.ModeSticky) }, "", ""},
		"a link from an open directory": {func(d, p string) error {
			open := filepath.Join(d, "open")
			return errors.Join(os.Rename(p, p+"2"), os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Symlink(p+"2",
				filepath.Join(open, "link")), os.Symlink(filepath.Join(open, "link"), p))
		}, "could be replaced by another user", "move it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `echo '{"decision": "approve"}'`)
			must.Do(t, c.spoil(b.dir, b.by.Command[0]))
			err := b.by.Check()
			if c.why == "" {
				must.Do(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(hint.Of(err), c.hint) {
				t.Fatalf("Check: %v (%s), want %s (%s)", err, hint.Of(err), c.why, c.hint)
			}
			b.run()
			if why := b.left(b.ask(post("/1", ""))); !strings.Contains(why, c.why) {
				t.Errorf("the owner is asked because %q", why)
			}
		})
	}
	b := newBench(t, "")
	b.by.Socket = b.by.Command[0]
	if err := b.by.Check(); err == nil || !strings.Contains(err.Error(), "is no socket") || hint.Of(err) == "" {
		t.Errorf("a file as a socket: %v", err)
	}
}
