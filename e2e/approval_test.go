package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// question is what aileron approval list --json has of a request that waits.
type question struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Host      string `json:"host"`
	Path      string `json:"path"`
	Requested string `json:"requested_at"`
	Inputs    []any  `json:"inputs"`
	Body      []byte `json:"body"`
	Waiting   int    `json:"waiting"`
	Connector string `json:"connector_fqn"`
	Tool      string `json:"tool"`
}

// asked waits for the request that waits with a body.
func (u *user) asked(body string) (found question) {
	u.t.Helper()
	harness.WaitFor(u.t, "a request with the body "+body+" waits", func() bool {
		var all []question
		// A session that starts, or ends, does not answer: the list is that of the others.
		must.Do(u.t, json.Unmarshal([]byte(u.run("approval", "list", "--json").out), &all))
		for _, q := range all {
			if q.Body != nil {
				u.t.Errorf("approval list has the body of %s", q.ID)
			}
			if q.State != "pending" {
				continue
			}
			shown := u.run("approval", "show", q.ID, "--json") // it may have ended meanwhile
			if json.Unmarshal([]byte(shown.out), &found) == nil && string(found.Body) == body {
				return true
			}
		}
		return false
	})
	return found
}

// hold sets how long requests are held.
func (u *user) hold(span string) {
	u.t.Helper()
	must.Do(u.t, os.WriteFile(filepath.Join(u.home, "config.toml"), []byte("[approval]\nhold = \""+span+"\"\n"), 0o600))
}

func TestARequestOfABoxWaitsUntilItIsApproved(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	var r result
	var box sync.WaitGroup
	box.Go(func() {
		r = u.box(`
		ask() { curl -sS -X POST https://api.echo.example/echo --data "$1"; echo; }
		curl -sS https://api.echo.example/echo >/dev/null && echo "<read>"
		ask one && echo "<one passed>"
		ask two && echo "<two denied>"`)
	})
	q := u.asked("one")
	if q.Operation != "write" || q.Method != "POST" || q.Host != "api.echo.example" || q.Path != "/echo" ||
		q.Tool != "asker" || q.Connector == "" || q.Requested == "" || q.Inputs == nil || q.SessionID == "" ||
		q.Agent != "sh" {
		t.Errorf("it is listed as %+v", q)
	}
	if seen := u.origin.Seen(); len(seen) != 1 || seen[0].Method != "GET" {
		t.Errorf("before the approval the service got %v", seen)
	}
	shown := u.must("approval", "show", q.ID).out
	contains(t, "approval show", shown, "asker write", "bearer/", "api.echo.example", "\n  | POST /echo\n", "\n  | one\n")
	u.must("approval", "approve", q.ID)
	u.must("approval", "deny", u.asked("two").ID)
	box.Wait()
	if r.code != 0 || strings.Contains(r.out+r.err+shown, secret[:16]) {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "the output", r.out, "<read>", "<one passed>", `"class":"approval_denied"`, "<two denied>")
	if seen := u.origin.Seen(); len(seen) != 2 || seen[1].Auth() != "Bearer "+secret || seen[1].Body != "one" {
		t.Errorf("the service got %+v", seen)
	}
	u.must("audit", "verify")
}

// What a sandbox can try by itself.
func TestABoxCannotApproveItself(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	u.hold("1s")
	r := u.box(`
		ask() { curl -sS -X POST https://api.echo.example/echo --data "$1"; echo; }
		id=$(ask one | sed 's/.*"approval_id":"\([0-9A-Z]*\)".*/\1/'); echo "<id $id>"
		api() { curl -sS -H "Authorization: Bearer $AILERON_TOKEN" "$@"; echo; }
		api $AILERON_API_URL/approvals/$id
		decision='{"approve":true,"for":"always","surface":"cli"}'
		for at in approvals/$id approvals approvals/$id/approve session/approvals/$id; do
			api -X POST --data "$decision" $AILERON_API_URL/$at
		done
		api -X POST --data "$decision" -H 'Host: session' http://aileron.internal/v1/approvals/$id
		for dir in ~/.aileron .aileron "$HOME/../.aileron"; do
			mkdir -p $dir/approvals && printf '{"format":1,"id":"%s","approve":true,"for":"always"}' $id \
				>$dir/approvals/$id.json
		done
		printf '[approval]\ndecider = "true"\n' >.aileron.toml
		find / -name control.sock 2>/dev/null; command -v aileron
		ask one; ask "one "; curl -sS -X POST https://api.echo.example/echo -H 'Content-Type: text/plain' --data one; echo`)
	if r.code != 0 || len(u.origin.Seen()) != 0 {
		t.Fatalf("exit %d, and the service got %v\n%s%s", r.code, u.origin.Seen(), r.out, r.err)
	}
	contains(t, "the output", r.out, `"state":"pending"`, `"reason":"owner_only"`, `"reason":"not_found"`)
	if n := strings.Count(r.out, `"class":"approval_required"`); n != 3 || strings.Contains(r.out, "control.sock") {
		t.Errorf("%d of 3 requests wait\n%s", n, r.out)
	}
	if _, err := os.Stat(filepath.Join(u.home, "approvals")); !os.IsNotExist(err) {
		t.Errorf("something is approved always: %v", err)
	}
	for _, row := range u.rows("--event", "approval.approved") {
		t.Errorf("a row says %v", row)
	}
}

// A program that decides does not lie where the agent could put another one.
func TestADeciderOfTheProjectIsRefused(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	program := filepath.Join(u.project, "decide")
	must.Do(t, os.WriteFile(program, []byte("#!/bin/sh\necho '{\"decision\": \"approve\"}'\n"), 0o700))
	for _, setting := range []string{"decider", "notify"} {
		must.Do(t, os.WriteFile(filepath.Join(u.home, "config.toml"),
			[]byte("[approval]\n"+setting+" = [\""+program+"\"]\n"), 0o600))
		r := u.box("echo STARTED")
		if r.code != 1 || strings.Contains(r.out, "STARTED") {
			t.Errorf("with a %s in the project: exit %d\n%s%s", setting, r.code, r.out, r.err)
		}
		contains(t, "the message", r.err, "[approval] "+setting+" of config.toml has "+program, "hint: move it")
	}
}

// A program of config.toml is asked first: it approves once, denies, and leaves the rest to the owner.
func TestADeciderIsAskedFirst(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	program := filepath.Join(u.home, "decide")
	must.Do(t, os.WriteFile(program, []byte(`#!/bin/sh
		cat >`+u.home+`/question-$$
		case $(cat `+u.home+`/question-$$) in
		*'"body":"b25l"'*) echo '{"decision": "approve", "reason": "it is one"}' ;;
		*'"body":"dHdv"'*) echo '{"decision": "deny", "reason": "it is two"}' ;;
		*) echo '{"decision": "approve", "for": "always"}' ;;
		esac`), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(u.home, "config.toml"),
		[]byte("[approval]\nhold = \"1m\"\ndecider = [\""+program+"\"]\n"), 0o600))
	contains(t, "doctor", u.run("doctor").out, "decider", program)
	var r result
	var box sync.WaitGroup
	box.Go(func() {
		r = u.box(`
		ask() { curl -sS -X POST https://api.echo.example/echo --data "$1"; echo; }
		ask one && echo "<one passed>"
		ask two && echo "<two denied>"
		ask three && echo "<three passed>"`)
	})
	u.must("approval", "approve", u.asked("three").ID)
	box.Wait()
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "the output", r.out, "<one passed>", `"class":"approval_denied"`, "<two denied>", "<three passed>")
	contains(t, "the messages", r.err, "its answer is not one object")
	if seen := u.origin.Seen(); len(seen) != 2 || seen[0].Body != "one" || seen[1].Body != "three" {
		t.Errorf("the service got %+v", seen)
	}
	decided := map[string]any{}
	for _, event := range []string{"approval.approved", "approval.denied"} {
		for _, row := range u.rows("--event", event) {
			fields, _ := row["fields"].(map[string]any)
			decided[fmt.Sprint(event, " ", fields["surface"], " ", fields["for"])] = fields["decider_reason"]
		}
	}
	want := map[string]any{"approval.approved decider once": "it is one", "approval.denied decider once": "it is two",
		"approval.approved cli once": nil}
	if !maps.Equal(decided, want) {
		t.Errorf("the rows are %v, want %v", decided, want)
	}
	questions := must.Get(filepath.Glob(filepath.Join(u.home, "question-*")))(t)
	for _, name := range questions {
		if raw := must.Get(os.ReadFile(name))(t); strings.Contains(string(raw), secret[:16]) || !json.Valid(raw) {
			t.Errorf("a question is %s", raw)
		}
	}
	if len(questions) != 3 {
		t.Errorf("%d questions were asked", len(questions))
	}
	u.must("audit", "verify")
}

// An agent that was told to wait sends the same request again, and it passes once.
func TestAnAgentThatWasToldComesBack(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	u.hold("1s")
	var r result
	var box sync.WaitGroup
	box.Go(func() {
		r = u.box(`
		until curl -fsS -X POST https://api.echo.example/echo --data again >/dev/null 2>&1; do sleep 1; done
		echo "<passed>"; curl -sS -X POST https://api.echo.example/echo --data again`)
	})
	u.must("approval", "approve", u.asked("again").ID)
	box.Wait()
	if r.code != 0 || len(u.origin.Seen()) != 1 {
		t.Errorf("exit %d, and the service got %d requests", r.code, len(u.origin.Seen()))
	}
	contains(t, "the output", r.out, "<passed>", `"class":"approval_required"`, `"retriable":true`,
		`"poll":"http://aileron.`)
}

// Nothing of what waits is sent when its session is killed, and nothing of it is there for the next one.
func TestAKilledSessionSendsNothingThatWaited(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	p := u.serve()
	var clients sync.WaitGroup
	for i := range 10 {
		clients.Go(func() {
			_ = exec.Command("curl", "-sS", "--proxy", p.ProxyURL, "--cacert", p.CAFile, "-X", "POST",
				"https://api.echo.example/echo", "--data", fmt.Sprint("kill", i)).Run()
		})
	}
	var ids []string
	for i := range 10 {
		ids = append(ids, u.asked(fmt.Sprint("kill", i)).ID)
	}
	must.Do(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	clients.Wait()
	r := u.run("approval", "approve", ids[0], "--json")
	if r.code != 1 || !strings.Contains(r.err, `"reason":"not_found"`) {
		t.Errorf("an approval for a killed session: exit %d\n%s", r.code, r.err)
	}
	u.serve()
	if got := u.must("approval", "list", "--json").out; strings.TrimSpace(got) != "[]" {
		t.Errorf("after the kill there waits %s", got)
	}
	if len(u.origin.Seen()) != 0 || len(u.rows("--event", "connector.proxy.started", "--rows")) != 0 {
		t.Errorf("the service got %v", u.origin.Seen())
	}
	var asked []string
	for _, row := range u.rows("--event", "approval.requested") {
		fields, _ := row["fields"].(map[string]any)
		asked = append(asked, fmt.Sprint(fields["approval_id"]))
	}
	slices.Sort(asked)
	slices.Sort(ids)
	if !slices.Equal(asked, ids) {
		t.Errorf("the log has %v, and asked were %v", asked, ids)
	}
	u.must("audit", "verify")
}
