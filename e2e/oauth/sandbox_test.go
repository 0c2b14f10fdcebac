package oauth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// client reads a stream, and asks again and again beside it, until there is a file.
const client = `curl -sSN 'https://mail.example.com/api/stream?echo=1' >stream &
while [ ! -e enough ]; do
	curl -sS -w '%{http_code}\n' -H "Authorization: Bearer $SERVICE_TOKEN" 'https://mail.example.com/api/me?echo=1' >>asked
	sleep 0.2
done
kill $! && wait $! || echo "the stream ends with $?"
curl -sS -w ' ended %{http_code}\n' https://accounts.example.com/token -d grant_type=refresh_token
`

// A client in a sandbox does not notice that its tokens expire: neither in its requests, nor in a stream that is open
// for longer than any token lives.
func TestAClientOutlivesItsTokens(t *testing.T) {
	t.Parallel()
	harness.NeedEngine(t, "podman")
	p := newPerson(t, authserver.Options{Life: 8 * time.Second}, "", "mail")
	p.logIn("ann", "binding", "setup", fqn("mail"))
	project, capture := t.TempDir(), filepath.Join(t.TempDir(), "x.har")
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(project, name))
		return string(text)
	}
	cmd := p.command(append(append([]string{"sandbox", "run", "--sandbox=podman", "--dir", project, "--capture", capture},
		p.Reach("mail")...), "--", "sh", "-c", client)...)
	ended := make(chan result, 1)
	go func() {
		out, errs, code := harness.Finish(t, cmd, harness.Patience)
		ended <- result{out, errs, code}
	}()
	var got result
	harness.Poll(harness.Patience, 100*time.Millisecond, func() bool {
		select {
		case got = <-ended:
			return true
		default: // two tokens have expired, and the stream goes on
			return p.State(t).Refreshes >= 4 && strings.Count(lastLine(read("stream")), `"****`) >= 3
		}
	})
	must.Do(t, os.WriteFile(filepath.Join(project, "enough"), nil, 0o600))
	if got == (result{}) {
		got = <-ended
	}
	for _, text := range []string{got.out, got.err, read("stream"), read("asked"),
		string(must.Get(os.ReadFile(capture))(t))} {
		_, _ = p.said.Write([]byte(text))
	}

	events := strings.Split(strings.TrimSpace(read("stream")), "\n\n")
	for i, event := range events {
		var e struct{ N int }
		err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &e)
		if i < len(events)-1 && (err != nil || e.N != i+1) {
			t.Fatalf("the event %d of the stream is %q: %v", i+1, event, err)
		}
	}
	if got.code != 0 || !strings.Contains(got.out, "the stream ends with 143") || !strings.Contains(got.out, "ended 403") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	for line := range strings.Lines(read("asked")) {
		if !strings.Contains(line, "ann") && line != "200\n" {
			t.Errorf("the service answers %s", line)
		}
	}
	renewed := harness.AuditRows(t, p.home, audit.Filter{Event: "binding.refreshed"})
	state := p.State(t)
	if len(renewed) != state.Refreshes || state.Refreshes < 4 || state.Reuses != 0 || state.APIRefusals != 0 {
		t.Errorf("%d rows of renewals, and %+v\n%s", len(renewed), state, got.err)
	}
	t.Logf("%d events, %d renewals, and of the token endpoint %s", len(events), state.Refreshes, got.out)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
