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
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// client reads a stream, and asks again and again beside it, until there is a file. Beside that Google's own library
// does the same.
const client = `node24 google.mjs & google=$!
curl -sSN 'https://mail.example.com/api/stream?echo=1' >curl.stream & stream=$!
while [ ! -e enough ]; do
	curl -sS -w '%{http_code}\n' -H "Authorization: Bearer $SERVICE_TOKEN" 'https://mail.example.com/api/me?echo=1' \
		>>curl.asked
	sleep 0.2
done
kill $stream && wait $stream || echo "the stream ends with $?"
wait $google || echo "Google's library ends with $?"
for at in accounts.example.com oauth2.googleapis.com; do
	curl -sS -w ' ended %{http_code}\n' https://$at/token -d grant_type=refresh_token
done
`

// Clients in a sandbox do not notice that their tokens expire: neither in their requests, nor in a stream that is open
// for longer than any token lives. One is curl, the other Google's library at the catalogue's connector.
func TestClientsOutliveTheirTokens(t *testing.T) {
	t.Parallel()
	harness.NeedEngine(t, "podman")
	image := recipes.Google()
	recipes.Need(t, "podman", image)
	p := newPerson(t, authserver.Options{Life: 8 * time.Second}, "", "mail")
	p.logIn("ann", "binding", "setup", fqn("mail"))
	p.logInAtGoogle("bob")
	project, capture := t.TempDir(), filepath.Join(t.TempDir(), "x.har")
	harness.Copy(t, "testdata/google.mjs", project)
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(project, name))
		return string(text)
	}
	run := []string{"sandbox", "run", "--sandbox=podman", "--image", image.Ref, "--dir", project, "--capture", capture}
	cmd := p.command(append(append(run, p.Reach("mail", authserver.Google)...), "--", "sh", "-c", client)...)
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
		default: // two tokens of each login have expired and were rotated, and the streams go on
			return expired(read("curl.stream")) && expired(read("google.stream"))
		}
	})
	must.Do(t, os.WriteFile(filepath.Join(project, "enough"), nil, 0o600))
	if got == (result{}) {
		got = <-ended
	}
	for _, text := range []string{got.out, got.err, read("curl.stream"), read("google.stream"), read("curl.asked"),
		read("google.asked"), string(must.Get(os.ReadFile(capture))(t))} {
		_, _ = p.said.Write([]byte(text))
	}

	if got.code != 0 || !strings.Contains(got.out, "the stream ends with 143\n") ||
		!strings.Contains(got.out, "the download ends when it is stopped\n") || strings.Count(got.out, " ended 403\n") != 2 {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	for client, login := range map[string]string{"curl": "ann", "google": "bob"} {
		if stream := read(client + ".stream"); !expired(stream) {
			t.Errorf("the stream of %s ends before its tokens have: %q", client, lastEvent(stream))
		}
		count(t, read(client+".stream"))
		for line := range strings.Lines(read(client + ".asked")) {
			if !strings.Contains(line, `"`+login+`"`) && line != "200\n" {
				t.Errorf("%s gets %s", client, line)
			}
		}
	}
	renewed := harness.AuditRows(t, p.home, audit.Filter{Event: "binding.refreshed"})
	state := p.State(t)
	if len(renewed) != state.Refreshes || state.Refreshes < 8 || state.Reuses != 0 || state.APIRefusals != 0 {
		t.Errorf("%d rows of renewals, and %+v\n%s", len(renewed), state, got.err)
	}
	t.Logf("%d renewals, and of the token endpoints %s", state.Refreshes, got.out)
}

// logInAtGoogle installs the catalogue's connector, and logs in with a client that has a secret, as Google's have.
func (p *person) logInAtGoogle(name string) {
	p.t.Helper()
	p.must("connector", "install", "google", "--yes")
	secret := filepath.Join(p.t.TempDir(), "secret")
	must.Do(p.t, os.WriteFile(secret, []byte(authserver.NativeSecret), 0o600))
	p.logIn(name, "binding", "setup", "google", "--client-id", authserver.Native, "--client-secret-file", secret)
}

// expired reports whether a stream has gone on while two tokens of its login expired: it shows that the login has used
// four, each for half of its life.
func expired(stream string) bool { return strings.Count(lastEvent(stream), `"****`) >= 4 }

// lastEvent returns the last event of a stream that is complete.
func lastEvent(stream string) string {
	events := strings.Split(stream, "\n\n")
	return events[max(0, len(events)-2)]
}

// count fails the test if an event of a stream is missing.
func count(t *testing.T, stream string) {
	t.Helper()
	events := strings.Split(strings.TrimSpace(stream), "\n\n")
	for i, event := range events {
		var e struct{ N int }
		err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &e)
		if i < len(events)-1 && (err != nil || e.N != i+1) {
			t.Fatalf("the event %d of the stream is %q: %v", i+1, event, err)
		}
	}
}
