package oauth

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A person logs in with a browser on another machine, and pastes the address at which it ends.
func TestALoginElsewhere(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{Iss: "https://" + authserver.Accounts}, "", "mail")

	for name, spoil := range map[string]func(*url.URL){
		"state":     func(u *url.URL) { set(u, "state", "another-state-of-some-length") },
		"issuer":    func(u *url.URL) { set(u, "iss", "https://elsewhere.example.com") },
		"/callback": func(u *url.URL) { u.Path = "/elsewhere" },
	} {
		l := p.begin("binding", "setup", fqn("mail"), "--no-browser")
		end := must.Get(url.Parse(p.LogIn(t, l.page(), "ann", "read")))(t)
		spoil(end)
		l.paste(end.String())
		if r := l.end(); r.code == 0 || !strings.Contains(r.err, name) || !strings.Contains(r.err, "nothing was stored") {
			t.Errorf("another %s: exit %d\n%s", name, r.code, r.err)
		}
	}
	l := p.begin("binding", "setup", fqn("mail"), "--no-browser")
	l.paste(p.LogIn(t, l.page(), ""))
	if r := l.end(); r.code == 0 || !strings.Contains(r.err, "access_denied") {
		t.Errorf("a person who denies: exit %d\n%s", r.code, r.err)
	}
	if p.bound("mail") || p.State(t).TokenRequests != 0 {
		t.Errorf("after logins that failed: bound %v, %+v", p.bound("mail"), p.State(t))
	}

	p.logIn("ann", "binding", "setup", fqn("mail"))
	s := p.serve()
	if text := s.mustGet("mail", "/api/me?echo=1"); !strings.Contains(text, `"login":"ann"`) {
		t.Errorf("the service answers %s", text)
	}
	p.must(append([]string{"binding", "revoke", binding("mail"), "--yes"}, p.Reach()...)...)
	if state := p.State(t); state.Revocations != 1 || state.Logins["ann"].Access+state.Logins["ann"].Refresh != 0 {
		t.Errorf("after the revocation: %+v", state)
	}
}

func set(u *url.URL, name, value string) {
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
}

// What a service has ended is reported once, with the command that helps, and a session that runs goes on with the
// login that takes its place.
func TestALoginThatTheServiceEnds(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{Life: 6 * time.Second}, "", "mail")
	p.logIn("ann", "binding", "setup", fqn("mail"))
	s := p.serve()
	s.mustGet("mail", "/api/me?echo=1")
	p.Revoke(t, "ann")
	var got response
	failed := func() bool {
		got = must.Get(s.get("mail", "/api/me"))(t)
		return got.class == "binding_failed"
	}
	harness.WaitFor(t, "a request is denied", failed)
	const helps = "aileron binding rebind oauth2/mail/default"
	failed() // again: it is not reported again
	if got.class != "binding_failed" || !strings.Contains(got.text, helps) || strings.Count(s.said.String(), helps) != 1 {
		t.Errorf("the denial is %+v, and the session says\n%s", got, s.said.String())
	}
	p.logIn("bob", "binding", "rebind", binding("mail"))
	harness.WaitFor(t, "the session uses the new login", func() bool { return !failed() })
	if text := s.mustGet("mail", "/api/me"); !strings.Contains(text, `"login":"bob"`) {
		t.Errorf("the service answers %s", text)
	}
	if state := p.State(t); state.Reuses != 0 {
		t.Errorf("a token was used twice: %+v", state)
	}
}

// A client that is its own owner has no person to ask.
func TestAMachineLogsIn(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{Life: 30 * time.Second}, "grant = \"client_credentials\"\n", "mail")
	secret := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(secret, []byte(authserver.MachSecret), 0o600))
	args := append([]string{"binding", "setup", fqn("mail"), "--client-id", authserver.Machine, "--client-secret-file",
		secret}, p.Reach()...)
	p.must(args...)
	s := p.serve()
	if text := s.mustGet("mail", "/api/me?echo=1"); !strings.Contains(text, `"login":"machine"`) {
		t.Errorf("the service answers %s", text)
	}
	// Its token lives for less than the margin.
	if state := p.State(t); state.TokenRequests < 2 || state.APIRefusals != 0 {
		t.Errorf("a token that is due was used as it is: %+v", state)
	}
}

// userCode is how the server writes the code of a device.
var userCode = regexp.MustCompile(`\b[A-Z2-7]{4}-[A-Z2-7]{4}\b`)

// A device has no browser, and prints a code that is entered in another one.
func TestADeviceLogsIn(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{}, "grant = \"device_code\"\n"+
		"device_authorization_url = \"https://accounts.example.com/device_authorization\"\n", "mail")
	l := p.begin("binding", "setup", fqn("mail"))
	page := l.page()
	code := userCode.FindString(l.said.String())
	res := p.Post(t, page+"?user_code="+code, url.Values{"login": {"cem"}, "decision": {"allow"}, "granted": {"read"}})
	if !strings.Contains(string(res.Body), "done") {
		t.Errorf("the page of the device answers %d %s\n%s", res.Status, res.Body, l.said.String())
	}
	if r := l.end(); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	if text := p.serve().mustGet("mail", "/api/me?echo=1"); !strings.Contains(text, `"login":"cem"`) {
		t.Errorf("the service answers %s", text)
	}
}
