package shims_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// patience bounds what a test waits for on a busy machine.
var patience = must.Patience(3 * time.Minute)

// session is a stand-in for a session's API, and the commands for it.
type session struct {
	t        *testing.T
	dir      string
	url      string
	env      []string // of the commands, besides what all have
	response string   // to each request
	cut      bool     // the response breaks off
	request           // the last one

	mu       sync.Mutex // of what the server's goroutines use:
	reply    string
	breakOff bool
	received request
}

// request is what a command sent.
type request struct {
	method, target, accept, agent, token, kind string
	body                                       []byte
}

const token = "session-token_0123456789"

func newSession(t *testing.T, set shims.Set) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir()}
	for _, c := range set.Commands() {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, c.Name), c.Script, 0o755))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := request{method: r.Method, target: r.RequestURI, accept: r.Header.Get("Accept"),
			agent: r.UserAgent(), kind: r.Header.Get("Content-Type")}
		in.body, _ = io.ReadAll(r.Body)
		r.Header["Authorization"] = r.Header["Proxy-Authorization"]
		_, in.token, _ = r.BasicAuth()
		s.mu.Lock()
		reply, breakOff := s.reply, s.breakOff
		s.received = in
		s.mu.Unlock()
		if breakOff {
			w.Header().Set("Content-Length", fmt.Sprint(len(reply)+10))
		}
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/v1"
	return s
}

type result struct {
	out, err string
	code     int
}

// command is a command that is run by a shell, which has words.
func (s *session) command(ctx context.Context, shell, stdin string, args ...string) *exec.Cmd {
	words := append(strings.Fields(shell), filepath.Join(s.dir, args[0]))
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], args[1:]...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AILERON_API_URL=" + s.url, "AILERON_TOKEN=" + token,
		"TMPDIR=" + s.dir, "http_proxy=http://127.0.0.1:1", "no_proxy=aileron.internal", "HOME=" + s.dir}
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// run runs a command by a shell to its end.
func (s *session) run(shell, stdin string, args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := s.command(ctx, shell, stdin, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	s.mu.Lock()
	s.reply, s.breakOff, s.received = s.response, s.cut, s.request
	s.mu.Unlock()
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.request = s.received
	s.mu.Unlock()
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// shells are those that may be a sandbox's sh, as far as this machine has them.
func shells(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, shell := range []string{"dash", "bash --posix", "busybox sh"} {
		if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
			t.Logf("not tried: %v", err)
			continue
		}
		list = append(list, shell)
	}
	if _, err := exec.LookPath("wget"); err != nil || len(list) == 0 {
		t.Skip("there is no wget, or no shell: scripts/prepare --tests installs them")
	}
	return list
}

func example(t *testing.T) shims.Set {
	return shims.Set{
		Connectors: []*spec.Connector{load(t, "tracker"), load(t, "open")},
		Actions: []shims.Action{{Name: "triage", Version: "1.0.0", Description: "Sorts new issues",
			Inputs: []spec.Input{{Name: "project", Type: "string", Required: true, Description: "The project"}}}},
	}
}

func TestACommandRunsItsOperation(t *testing.T) {
	s := newSession(t, example(t))
	const denial = "1 403 01ID denial\naileron: no. Ask.\n{\"error\":{}}\n"
	const operation = `{"connector_fqn":"github://acme/tracker","tool":"tracker","operation":"issues.get","args":`
	for _, shell := range shells(t) {
		for _, c := range []struct {
			why, args, stdin, response string
			cut                        bool
			body, out, err             string // err: a part
			code                       int
		}{
			{why: "a response", args: `tracker issues.get --args {"id":7}`,
				response: "0 200 01ID response\n{\"title\":1}\nx",
				body:     operation + `{"id":7}}`, out: "{\"title\":1}\nx"},
			{why: "another spelling", args: `tracker --args={"id":7} issues.get`, response: "0 200 01ID response\n",
				body: operation + `{"id":7}}`},
			{why: "no arguments", args: `tracker issues.get`, response: "0 200 01ID response\n", body: operation + `{}}`},
			{why: "arguments of standard input", args: `tracker issues.get --args -`, stdin: "{\"id\":\n8}\n",
				response: "0 200 01ID response\n", body: operation + "{\"id\":\n8}\n}"},
			{why: "an upstream that fails", args: `tracker issues.get`, response: "1 404 01ID response\nnone\n",
				body: operation + `{}}`, out: "none\n", err: "the upstream responded with status 404\naudit id: 01ID\n", code: 1},
			{why: "a denial", args: `tracker issues.get`, response: denial, body: operation + `{}}`,
				err: "tracker issues.get: aileron: no. Ask.\naudit id: 01ID\n", code: 1},
			{why: "a denial, as JSON", args: `tracker issues.get --json`, response: denial, body: operation + `{}}`,
				out: "{\"error\":{}}\n", err: "aileron: no. Ask.", code: 1},
			{why: "invalid arguments", args: `tracker issues.get`, response: "2 400 01ID denial\nbad id\n{}",
				body: operation + `{}}`, code: 2,
				err: "bad id\naudit id: 01ID\nhint: tracker issues.get --help lists the arguments\n"},
			{why: "a pending approval", args: `tracker issues.get`, response: "75 403 01ID denial\nwait\n{}",
				body: operation + `{}}`, err: "wait", code: 75},
			{why: "a response that breaks off", args: `tracker issues.get`, response: "0 200 01ID response\nhalf", cut: true,
				body: operation + `{}}`, out: "half", err: "the response broke off", code: 1},
			{why: "no response of a session", args: `tracker issues.get`, response: "<html>", body: operation + `{}}`,
				err: "the session did not respond as expected", code: 1},
			{why: "an action", args: `triage --args {"project":"p"}`, response: "0 200 01ID response\ndone\n",
				body: `{"action":"triage","args":{"project":"p"}}`, out: "done\n"},
		} {
			s.response, s.cut, s.body = c.response, c.cut, nil
			got := s.run(shell, c.stdin, strings.Fields(c.args)...)
			if got.out != c.out || !strings.Contains(got.err, c.err) || c.err == "" && got.err != "" || got.code != c.code {
				t.Errorf("%s: %s: %+v", shell, c.why, got)
			}
			if string(s.body) != c.body || s.token != token {
				t.Errorf("%s: %s: the session received %q with the token %q, want %q", shell, c.why, s.body, s.token, c.body)
			}
		}
	}
}

func TestAWrongCallIsNotSent(t *testing.T) {
	s := newSession(t, example(t))
	for _, shell := range shells(t) {
		for _, c := range []struct {
			args []string
			err  string
		}{
			{[]string{"tracker"}, "no operation is named"},
			{[]string{"tracker", "issues.drop"}, `"issues.drop" is not an operation of tracker`},
			{[]string{"tracker", "issues.*"}, "an argument is not an operation of tracker"},
			{[]string{"tracker", "$(id)"}, "an argument is not an operation of tracker"},
			{[]string{"tracker", "issues.get\x1b[2J"}, "an argument is not an operation of tracker"},
			{[]string{"tracker", "issues.get", "7"}, `"7" follows the operation`},
			{[]string{"tracker", "issues.get", "--id=7"}, `"--id=7" is not a flag`},
			{[]string{"tracker", "issues.get", "--args"}, "--args has no value"},
			{[]string{"tracker", "issues.get", "--args", ""}, "--args is empty"},
			{[]string{"triage", "now"}, `"now" is not expected`},
		} {
			s.method = ""
			got := s.run(shell, "", c.args...)
			if got.code != 2 || got.out != "" || s.method != "" || !strings.HasPrefix(got.err, c.args[0]) ||
				!strings.Contains(got.err, c.err+"\nhint: ") || strings.ContainsRune(got.err, '\x1b') {
				t.Errorf("%s: %q: %+v", shell, c.args, got)
			}
		}
	}
}

// What a value has in it is neither evaluated nor lost.
func TestAValueIsOnlyAValue(t *testing.T) {
	s := newSession(t, example(t))
	ran := filepath.Join(s.dir, "ran")
	for _, shell := range shells(t) {
		for _, value := range []string{
			"$(touch " + ran + ")", "`touch " + ran + "`", `'; touch ` + ran + `; '`, `"; touch ` + ran + `; "`,
			"\n\ntouch " + ran,
			"\\n\\0%s%n%%", "-n", "--json", "@" + ran, "*", "é\x80\x1b", strings.Repeat("x", 100_000),
		} {
			s.response = "0 200 01ID response\n"
			for _, stdin := range []bool{false, true} {
				args, in := []string{"tracker", "issues.get", "--args", value}, ""
				if stdin {
					args[3], in = "-", value
				}
				got := s.run(shell, in, args...)
				want := `{"connector_fqn":"github://acme/tracker","tool":"tracker","operation":"issues.get","args":` + value + "}"
				if got.code != 0 || string(s.body) != want {
					t.Errorf("%s: %.60q, by standard input %v: %+v, sent %.200q", shell, value, stdin, got, s.body)
				}
				if _, err := os.Stat(ran); err == nil {
					t.Fatalf("%s: %.60q was run", shell, value)
				}
			}
		}
	}
}

// The longest word that a program can have leaves no room for the rest of a request in another one.
func TestTheLongestArgumentIsSent(t *testing.T) {
	s := newSession(t, example(t))
	s.response = "0 200 01ID response\n"
	long := `{"text":"` + strings.Repeat("x", 128<<10-1-len(`{"text":""}`)) + `"}`
	for _, shell := range shells(t) {
		got := s.run(shell, "", "tracker", "issues.create", "--args", long)
		if got.code != 0 || !bytes.HasSuffix(s.body, []byte(long+"}")) {
			t.Errorf("%s: %+v; the session received %d bytes", shell, got, len(s.body))
		}
	}
}

func TestManyMegabytesPassThroughStandardInput(t *testing.T) {
	s := newSession(t, example(t))
	s.response = "0 200 01ID response\n"
	large := `{"text":"` + strings.Repeat("0123456789", 1<<20) + `"}`
	for _, shell := range shells(t) {
		got := s.run(shell, large, "tracker", "issues.create", "--args", "-")
		if got.code != 0 || !bytes.HasSuffix(s.body, []byte(large+"}")) {
			t.Errorf("%s: %+v; the session received %d bytes", shell, got, len(s.body))
		}
		left, _ := filepath.Glob(filepath.Join(s.dir, ".aileron*"))
		if len(left) > 0 {
			t.Errorf("%s: left behind: %q", shell, left)
		}
	}
}

// The image's own wgetrc has a proxy for other requests, and may have anything else. GNU wget takes the variable for
// it.
func TestTheSystemsConfigurationOfWgetIsNotRead(t *testing.T) {
	s := newSession(t, example(t))
	s.response = "0 200 01ID response\nbody"
	file := filepath.Join(s.dir, "wgetrc")
	for _, text := range []string{"http_proxy = http://127.0.0.1:1/\nuse_proxy = on\n", "output_document = /dev/null\n",
		"header = Accept: text/html\n", "no such command\n"} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		s.env = []string{"SYSTEM_WGETRC=" + file}
		for _, shell := range shells(t) {
			got := s.run(shell, "", "tracker", "issues.get")
			if got != (result{out: "body"}) || s.accept != "application/vnd.aileron.shim.v1" {
				t.Errorf("%s: with %q: %+v, accept %q", shell, text, got, s.accept)
			}
			if !strings.HasPrefix(s.agent, "Wget/") && shell != "busybox sh" { // whose wget cannot reach this stand-in
				t.Errorf("%s: with %q, the client is %q", shell, text, s.agent)
			}
		}
	}
}

// BusyBox's timeout ends the shell alone: that must not wait for a response.
func TestACommandThatIsKilledEnds(t *testing.T) {
	s := newSession(t, example(t))
	arrived, never := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-never
	}))
	defer server.Close()
	defer close(never)
	s.url = server.URL + "/v1"
	for _, shell := range shells(t) {
		for _, args := range []string{"{}", "-"} {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			cmd := s.command(ctx, shell, "{}", "tracker", "issues.get", "--args", args)
			must.Do(t, cmd.Start())
			select {
			case <-arrived:
			case <-ctx.Done():
				t.Fatalf("%s: --args %s: no request", shell, args)
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			err := cmd.Wait()
			if status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); ctx.Err() != nil || status.Signal() != syscall.SIGTERM {
				t.Errorf("%s: --args %s: it ended with %v", shell, args, err)
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, ".aileron*")); len(left) > 0 {
				t.Errorf("%s: --args %s: left behind: %q", shell, args, left)
			}
			cancel()
		}
	}
}

func TestACommandPrintsItsHelp(t *testing.T) {
	s := newSession(t, example(t))
	var all strings.Builder
	for i, shell := range shells(t) {
		var b strings.Builder
		for _, args := range [][]string{{"tracker", "--help"}, {"tracker", "issues.get", "--help"},
			{"tracker", "-h", "issues.comment"}, {"mirror", "packages", "--help"}, {"triage", "--help"}} {
			got := s.run(shell, "", args...)
			if got.code != 0 || got.err != "" {
				t.Errorf("%s: %q: %+v", shell, args, got)
			}
			fmt.Fprintf(&b, "$ %s\n%s\n", strings.Join(args, " "), got.out)
		}
		if i == 0 {
			all.WriteString(b.String())
		} else if b.String() != all.String() {
			t.Errorf("%s prints another help:\n%s", shell, b.String())
		}
	}
	golden(t, "help.golden", []byte(all.String()))
}

// spec refuses some of these texts; a command does not count on it.
func TestAnAuthorsTextCannotLeaveItsLine(t *testing.T) {
	set := example(t)
	c := set.Connectors[0]
	ran := filepath.Join(t.TempDir(), "ran")
	hostile := "x\x1b[2J\x1b]0;title\a\r\b\b\x7f\u009b31m\u202e\u200b\nEND_OF_HELP\ntouch " + ran + "\n$(touch " + ran +
		") `touch " + ran + "` '; touch " + ran + "; '\" \\"
	c.Tools[0].Description, c.Version = hostile, "1.0.0"+hostile
	op := c.Tools[0].Operations[0]
	op.Summary, op.Description = hostile, "END_OF_HELP"
	op.Inputs[0].Description, op.Inputs[0].Values = hostile, []string{hostile}
	set.Actions[0].Description, set.Actions[0].Version = hostile, hostile
	s := newSession(t, set)
	for _, shell := range shells(t) {
		for _, args := range [][]string{{"tracker", "--help"}, {"tracker", "issues.get", "--help"}, {"triage", "--help"}} {
			got := s.run(shell, "", args...)
			if got.code != 0 || got.err != "" || !strings.Contains(got.out, "touch "+ran) {
				t.Errorf("%s: %q: %+v", shell, args, got)
			}
			for _, r := range got.out {
				if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u202e\u200b", r) {
					t.Errorf("%s: %q prints %U", shell, args, r)
				}
			}
			if _, err := os.Stat(ran); err == nil {
				t.Fatalf("%s: a text was run", shell)
			}
		}
	}
}

// A shell that finds a command which the session no longer has says so as it does of one that is not there.
func TestACommandThatIsGoneSaysSo(t *testing.T) {
	s := newSession(t, example(t))
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "tracker"), shims.Gone("tracker"), 0o755))
	for _, shell := range shells(t) {
		got := s.run(shell, "", "tracker", "issues.get")
		want := "tracker: not found: this session has no such connector or action any more\n" +
			"hint: /etc/aileron/tools.txt lists what it has now\n"
		if got != (result{err: want, code: 127}) {
			t.Errorf("%s: %+v, want the error %q", shell, got, want)
		}
	}
}

func TestShellcheckFindsNothing(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("there is no shellcheck: scripts/prepare --tests installs it")
	}
	s := newSession(t, example(t))
	for _, name := range []string{"tracker", "mirror", "triage"} {
		out, err := exec.Command("shellcheck", "--shell=sh", filepath.Join(s.dir, name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestTheTokenIsInNoArgument(t *testing.T) {
	s := newSession(t, example(t))
	s.response = "0 200 01ID response\n"
	for _, shell := range shells(t) {
		traced := s.run(shell+" -x", "", "tracker", "issues.get")
		if strings.Contains(traced.err, "Bearer") {
			t.Errorf("%s: the token is an argument: %s", shell, traced.err)
		}
		if traced.code != 0 || s.token != token {
			t.Errorf("%s: %+v", shell, traced)
		}
	}
}

func TestOneCommandHasOneSource(t *testing.T) {
	one, two := load(t, "tracker"), load(t, "open")
	two.Tools[0].Name = "Tracker"
	action := []shims.Action{{Name: "tracker"}}
	const connector = "aileron connector remove github://acme/tracker"
	const rival = "aileron connector remove github://acme/mirror"
	for _, c := range []struct {
		why   string
		set   shims.Set
		agent string
		words []string // of the error and its hint; none: there is no conflict
	}{
		{"two connectors", shims.Set{Connectors: []*spec.Connector{one, two}}, "claude",
			[]string{"github://acme/tracker 1.2.0", "github://acme/mirror 0.1.0", connector, rival}},
		{"a connector and an action", shims.Set{Connectors: []*spec.Connector{one}, Actions: action}, "claude",
			[]string{"github://acme/tracker", "the action tracker", connector, "aileron action remove tracker"}},
		{"a connector and the agent", shims.Set{Connectors: []*spec.Connector{one}}, "/usr/bin/TRACKER",
			[]string{"github://acme/tracker", "this session: /usr/bin/TRACKER", connector}},
		{"an action and the agent", shims.Set{Actions: action}, "tracker",
			[]string{"the action tracker", "this session: tracker", "aileron action remove tracker"}},
		{"no conflict", shims.Set{Connectors: []*spec.Connector{one}, Actions: []shims.Action{{Name: "triage"}}}, "claude",
			nil},
	} {
		err := c.set.Conflict(c.agent)
		if (err == nil) != (c.words == nil) {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		for _, word := range c.words {
			if text := err.Error() + "\n" + hint.Of(err); !strings.Contains(text, word) {
				t.Errorf("%s: %q has no %q", c.why, text, word)
			}
		}
	}
}

// What a script does not have it asks the session for, which is told the words and nothing else.
func TestACommandAsksTheSessionForHelp(t *testing.T) {
	set := example(t)
	tool := &set.Connectors[1].Tools[0]
	for i := range 60 {
		op := *tool.Operations[0]
		op.Name, op.Group = fmt.Sprintf("things.number%d", i), "things"
		tool.Operations = append(tool.Operations, &op)
	}
	s := newSession(t, set)
	s.response = "0 200 - response\nthe help\n"
	const small = `{"connector_fqn":"github://acme/tracker","tool":"tracker","command":"tracker","words":[`
	const large = `{"connector_fqn":"github://acme/mirror","tool":"mirror","command":"mirror","words":[`
	for _, shell := range shells(t) {
		for _, c := range []struct {
			args []string
			body string // "": nothing is sent
		}{
			{[]string{"tracker", "--help", "issue", "create"}, small + `"issue","create"]}`},
			{[]string{"tracker", "issue", "--help"}, small + `"issue"]}`},
			{[]string{"tracker", "issues.get", "-h", "x"}, small + `"issues.get","x"]}`},
			{[]string{"tracker", "--help", "задача $(id) `id`"}, small + "\"задача $(id) `id`\"]}"},
			{[]string{"mirror", "things.number7", "--help"}, large + `"things.number7"]}`},
			{[]string{"mirror", "things", "--help", "--json"}, large + `"things"]}`},
			{[]string{"mirror", "--help", ""}, large + `""]}`},
			{[]string{"tracker", "issues.get", "--help"}, ""},
			{[]string{"mirror", "--help"}, ""},
		} {
			s.method, s.body = "", nil
			got := s.run(shell, "", c.args...)
			if got.code != 0 || got.err != "" || string(s.body) != c.body || (got.out == "the help\n") != (c.body != "") {
				t.Errorf("%s: %q: %+v, sent %q", shell, c.args, got, s.body)
			}
			if c.body != "" && (s.target != "http://aileron.internal/v1/connector-operations/help" ||
				s.accept != "application/vnd.aileron.shim.v1" || s.token != token) {
				t.Errorf("%s: %q: to %s as %s with %q", shell, c.args, s.target, s.accept, s.token)
			}
		}
		for _, word := range []string{`"`, `a\`} {
			s.method = ""
			if got := s.run(shell, "", "tracker", "--help", word); got.code != 2 || s.method != "" ||
				!strings.Contains(got.err, "a word has a quote or a backslash\nhint: ") {
				t.Errorf("%s: %q: %+v", shell, word, got)
			}
		}
		s.response = "2 400 01ID denial\ntoo many\n{}"
		got := s.run(shell, "", "tracker", "--help", "x")
		if got.code != 2 || !strings.HasPrefix(got.err, "tracker: too many\n") {
			t.Errorf("%s: a denial: %+v", shell, got)
		}
		s.response = "0 200 - response\nthe help\n"
	}
}
