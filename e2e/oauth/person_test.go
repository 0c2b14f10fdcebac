package oauth

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

const passphrase = "correct horse battery"

// manifest is that of a connector for a service: its name, the table of its login, and its client.
const manifest = `[connector]
name = "github://aileron-tests/%[1]s"
version = "0.1.0"

[capabilities.network]
hosts = ["%[1]s.example.com:443", "accounts.example.com:443"]

[capabilities.credential]
kind = "oauth2"
scope = "Whatever the stand-in does"

[capabilities.credential.oauth2]
authorize_url = "https://accounts.example.com/authorize"
token_url = "https://accounts.example.com/token"
revoke_url = "https://accounts.example.com/revoke"
client_id = "%[2]s"
scopes = ["read"]
`

const operations = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://aileron-tests/%[1]s", "version": "0.1.0"},
 "placeholders": [{"env": "SERVICE_TOKEN", "value": "placeholder-the-real-one-stays-outside"}],
 "tools": [{"name": "%[1]s", "description": "The API of e2e/oauthserver", "operations": [
  {"name": "me", "summary": "Who logged in", "method": "GET", "path": "/api/me", "hosts": ["%[1]s.example.com"],
   "idempotency": "idempotent", "credential": "oauth2", "query": "declared",
   "inputs": [{"name": "echo", "type": "string"}]},
  {"name": "stream", "summary": "Events until the client leaves", "method": "GET", "path": "/api/stream",
   "hosts": ["%[1]s.example.com"], "idempotency": "idempotent", "credential": "oauth2", "query": "declared",
   "inputs": [{"name": "echo", "type": "string"}]}]}]}
`

// person has a home, and connectors for services of a server.
type person struct {
	*authserver.Server
	t        *testing.T
	home     string
	services []string
	said     must.Output // what any command printed
}

// newPerson returns a person with a connector for each service, whose manifests end with more. At the end of the test,
// no secret of the server may be in anything that was written.
func newPerson(t *testing.T, o authserver.Options, more string, services ...string) *person {
	t.Helper()
	o.Build = server
	p := &person{Server: authserver.Start(t, o), t: t, home: filepath.Join(must.ShortDir(t), "h"), services: services}
	for _, service := range services {
		dir := t.TempDir()
		text := fmt.Sprintf(manifest, service, authserver.Public) + more
		must.Do(t, os.WriteFile(filepath.Join(dir, "manifest.toml"), []byte(text), 0o600))
		spec := filepath.Join(dir, "aileron.connector.v1.json")
		must.Do(t, os.WriteFile(spec, fmt.Appendf(nil, operations, service), 0o600))
		p.must("connector", "install", dir, "--yes")
	}
	harness.ShareImages(t, p.home)
	t.Cleanup(p.search)
	return p
}

// fqn returns the name of the connector for a service.
func fqn(service string) string { return "github://aileron-tests/" + service }

// binding returns the name of the binding that setup makes for a service.
func binding(service string) string { return "oauth2/" + service + "/default" }

// command returns a command of a person without a browser of their own.
func (p *person) command(args ...string) *exec.Cmd {
	cmd := exec.Command(aileron, args...)
	cmd.Env = append(harness.Env(p.home, passphrase), "BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY=")
	return cmd
}

type result struct {
	out, err string
	code     int
}

// run runs aileron to its end.
func (p *person) run(args ...string) result {
	p.t.Helper()
	out, errs, code := harness.Finish(p.t, p.command(args...), harness.Patience)
	_, _ = p.said.Write([]byte(out + errs))
	return result{out, errs, code}
}

func (p *person) must(args ...string) result {
	p.t.Helper()
	r := p.run(args...)
	if r.code != 0 {
		p.t.Fatalf("aileron %q: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r
}

// login is a command that waits for its person.
type login struct {
	p     *person
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  must.Output
	ended chan struct{}
}

// begin starts a command that logs in.
func (p *person) begin(args ...string) *login {
	p.t.Helper()
	l := &login{p: p, cmd: p.command(append(args, p.Reach()...)...), ended: make(chan struct{})}
	l.stdin = must.Get(l.cmd.StdinPipe())(p.t)
	l.cmd.Stdout, l.cmd.Stderr = &l.said, &l.said
	must.Do(p.t, l.cmd.Start())
	go func() { defer close(l.ended); _ = l.cmd.Wait() }()
	p.t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		<-l.ended
	})
	return l
}

// page returns the address that the command prints: a line of its own.
func (l *login) page() (page string) {
	l.p.t.Helper()
	harness.WaitFor(l.p.t, "the command prints the address of the login", func() bool {
		for line := range strings.Lines(l.said.String()) {
			if strings.HasPrefix(line, "https://") && strings.HasSuffix(line, "\n") {
				page = strings.TrimSuffix(line, "\n")
				return true
			}
		}
		select {
		case <-l.ended:
			l.p.t.Fatalf("the command ends: %s", l.said.String())
		default:
		}
		return false
	})
	return page
}

// paste writes a line to the command, as a person pastes it.
func (l *login) paste(text string) {
	l.p.t.Helper()
	must.Get(io.WriteString(l.stdin, text+"\n"))(l.p.t)
}

// end waits for the end of the command.
func (l *login) end() result {
	l.p.t.Helper()
	select {
	case <-l.ended:
	case <-time.After(harness.Patience):
		l.p.t.Fatalf("the login does not end: %s", l.said.String())
	}
	_, _ = l.p.said.Write([]byte(l.said.String()))
	return result{"", l.said.String(), l.cmd.ProcessState.ExitCode()}
}

// logIn logs in by pasting, and wants it to end well.
func (p *person) logIn(name string, args ...string) {
	p.t.Helper()
	l := p.begin(append(args, "--no-browser")...)
	l.paste(p.LogIn(p.t, l.page(), name, "read"))
	if r := l.end(); r.code != 0 {
		p.t.Fatalf("aileron %q: exit %d\n%s", args, r.code, r.err)
	}
}

// bound reports whether the vault has a binding for a service.
func (p *person) bound(service string) bool {
	p.t.Helper()
	var list []struct{ Name string }
	must.Do(p.t, json.Unmarshal([]byte(p.must("binding", "list", "--json").out), &list))
	for _, b := range list {
		if b.Name == binding(service) {
			return true
		}
	}
	return false
}

// session is an aileron proxy that runs.
type session struct {
	p      *person
	cmd    *exec.Cmd
	said   must.Output
	client *http.Client
	ended  chan struct{}
	kill   func() // unless it has ended
}

// serve starts a session.
func (p *person) serve() *session {
	p.t.Helper()
	return p.serveAs(p.command(append([]string{"proxy", "--json"}, p.Reach(p.services...)...)...))
}

// serveAs starts the session that a command is.
func (p *person) serveAs(cmd *exec.Cmd) *session {
	p.t.Helper()
	s := &session{p: p, cmd: cmd, ended: make(chan struct{})}
	s.cmd.Stderr = &s.said
	ready, err := harness.StartProxy(s.cmd)
	if err != nil {
		p.t.Fatal(err)
	}
	proxy, roots := must.Get(ready.Proxy())(p.t), must.Get(ready.Roots())(p.t)
	go func() { defer close(s.ended); _ = s.cmd.Wait() }()
	s.kill = sync.OnceFunc(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		s.client.CloseIdleConnections()
		_, _ = p.said.Write([]byte(s.said.String()))
	})
	p.t.Cleanup(func() { s.kill() })
	s.client = &http.Client{Timeout: harness.Patience, Transport: &http.Transport{Proxy: http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	return s
}

// response is a response of a service, or a denial.
type response struct {
	status        int
	text          string
	class, reason string // of a denial
}

// get asks a service.
func (s *session) get(service, path string) (r response, err error) {
	res, err := s.client.Get("https://" + authserver.API(service) + path)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	_, _ = s.p.said.Write(body)
	r.status, r.text = res.StatusCode, string(body)
	var denial struct {
		Error struct {
			Class   string
			Details struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &denial) == nil {
		r.class, r.reason = denial.Error.Class, denial.Error.Details.Reason
	}
	return r, err
}

// mustGet asks a service, and wants it to respond with 200.
func (s *session) mustGet(service, path string) string {
	s.p.t.Helper()
	r := must.Get(s.get(service, path))(s.p.t)
	if r.status != http.StatusOK {
		s.p.t.Fatalf("%s of %s: %d %s\n%s", path, service, r.status, r.text, s.said.String())
	}
	return r.text
}

// search fails the test if a secret of the server is in what was printed, in what a sandbox got, in the home or in an
// export of the audit log.
func (p *person) search() {
	for _, format := range []string{"har", "jsonl", "csv"} {
		p.run("audit", "export", "--format", format)
	}
	p.run("binding", "list", "--json")
	leaks := &harness.Leaks{}
	secrets := p.Secrets(p.t)
	if len(secrets) < 4 {
		p.t.Errorf("only %d secrets are searched for", len(secrets))
	}
	for i, s := range secrets {
		leaks.Add(fmt.Sprintf("secret %d of %d", i+1, len(secrets)), s)
	}
	if what := leaks.Find([]byte(p.said.String())); what != "" {
		p.t.Errorf("%s is in what was printed", what)
	}
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if what := leaks.Find(data); what != "" {
			p.t.Errorf("%s is in %s", what, path)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
}
