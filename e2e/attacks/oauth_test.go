package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// oau: access tokens of OAuth2, and where new ones come from.
func oau() category {
	return category{name: "OAU", cases: join(written("oauth"), []attack{
		{id: "OAU-01", does: "a token that is near its end is renewed once, before it is injected", run: func(c *testCase) {
			i := newIdentityProvider(c)
			p := i.login(c)
			s := p.start(i.flags()...)
			for range 3 {
				i.get(c, s)
			}
			if i.renewals() != 1 || !slices.Equal(i.used(), []string{"access-1", "access-1", "access-1"}) {
				c.failf("%d renewals, and the service got %v", i.renewals(), i.used())
			}
		}},
		{id: "OAU-02", does: "a hundred requests at the end of a token make one token request", run: func(c *testCase) {
			i := newIdentityProvider(c)
			p := i.login(c)
			i.delay = 500 * time.Millisecond
			s := p.start(i.flags()...)
			i.getAll(c, 100, s)
			if i.renewals() != 1 {
				c.failf("%d token requests", i.renewals())
			}
		}},
		{id: "OAU-04", does: "a session is killed during a renewal, and its refresh token is not sent twice", run: oau04},
		{id: "OAU-05", does: "two sessions share a login, and one of them renews it", run: func(c *testCase) {
			i := newIdentityProvider(c)
			p := i.login(c)
			i.delay = 300 * time.Millisecond
			i.getAll(c, 20, p.start(i.flags()...), p.start(i.flags()...))
			if i.renewals() != 1 || slices.Contains(i.used(), "access-0") {
				c.failf("%d token requests, and the service got %v", i.renewals(), i.used())
			}
		}},
		{id: "OAU-14", does: "an operation that issues credentials is not granted in silence", run: oau14},
		{id: "OAU-08", does: "an answer that is no token is bounded, and told without a secret", run: oau08},
		{id: "OAU-10", does: "a token that the disk does not take is kept in memory, and not used before it is on disk",
			run: oau10},
		{id: "OAU-13", does: "a provider with another clock leads to no loop of renewals", run: oau13},
		{id: "OAU-07", does: "an access token that no header can hold is refused when it is bound", run: func(c *testCase) {
			p := newPerson(c.t)
			p.install("oauth")
			p.newVault()
			for _, token := range []string{"", "token\r\nX-More: 1", "token\ntoken", "tok\x00en-of-some-length",
				"tok\x1ben-of-some-length", repeated("x", 1<<20), "short"} {
				if e := p.tell(token, "binding", "setup", "github://attacks/oauth", "--secret-stdin"); e.code == 0 ||
					strings.Contains(e.String(), "X-More") {
					c.failf("%.20q: %s", token, e)
				}
			}
			if list := p.must("binding", "list", "--json").out; strings.TrimSpace(list) != "[]" {
				c.failf("something was bound: %s", list)
			}
		}},
	})}
}

// What such an operation issues arrives: docs/scrubbing.md says so, and who installs it is told.
func oau14(c *testCase) {
	p, dir := newPerson(c.t), c.t.TempDir()
	from := filepath.Join("testdata", "connectors", "oauth")
	must.Do(c.t, os.CopyFS(dir, os.DirFS(from)))
	doc := filepath.Join(dir, "aileron.connector.v1.json")
	issuing := strings.Replace(string(must.Get(os.ReadFile(doc))(c.t)),
		`"name": "items.list", "method": "GET", "path": "/v1/items"`,
		`"name": "tokens.create", "method": "POST", "path": "/v1/tokens"`, 1)
	must.Do(c.t, os.WriteFile(doc, []byte(issuing), 0o600))
	const warning = "warning: github://attacks/oauth: credentials that these issue reach the agent"
	if asked := p.run("connector", "install", dir); asked.code == 0 || !strings.Contains(asked.String(), warning) ||
		!strings.Contains(asked.String(), "tokens.create") {
		c.failf("the question is without a warning: %s", asked)
	}
	if granted := p.must("connector", "install", dir, "--yes"); !strings.Contains(granted.String(), warning) {
		c.failf("it is granted without a warning: %s", granted)
	}
	shown := p.must("connector", "show", "oauth", "--json").out
	if !strings.Contains(shown, `"may_issue_credentials":true`) {
		c.failf("it is shown as %s", shown)
	}
}

func oau08(c *testCase) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = io.CopyN(w, zeros{}, 5<<20)
	must.Do(c.t, w.Close())
	for name, answer := range map[string]func(w http.ResponseWriter){
		"5 MiB": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"`+repeated("x", 5<<20)+`"}`)
		},
		"bomb": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		},
		"HTML": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>refresh-0 is unknown</h1>")
		},
		"echo": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"slow","error_description":"refresh-0 of secret-of-client is not known"}`)
		},
	} {
		i := newIdentityProvider(c)
		p := i.login(c)
		i.other = answer
		s := p.start(i.flags()...)
		i.get(c, s) // with the token in force, which has half a minute left
		said := string(s.logs())
		if i.renewals() != 1 || !slices.Equal(i.used(), []string{"access-0"}) ||
			!strings.Contains(said, "could not be renewed") {
			c.failf("%s: %d token requests, the service got %v, and the session said %s", name, i.renewals(), i.used(), said)
		}
		for _, secret := range []string{"refresh-0", "access-0", "secret-of-client"} {
			if strings.Contains(said, secret) {
				c.failf("%s: the session says %s", name, secret)
			}
			for _, row := range p.rows(0) {
				if strings.Contains(fmt.Sprint(row), secret) {
					c.failf("%s: a row has %s", name, secret)
				}
			}
		}
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// identityProvider is idp.good.test, and oauth.good.test, which takes its tokens. Each token request gets the tokens of
// the next number; those of the login have half a minute left.
type identityProvider struct {
	*httptest.Server
	delay time.Duration
	other func(http.ResponseWriter) // answers renewals; nil: the provider does

	before  func() // nil, or called before renewals are answered
	date    string // that of its answers; "": the time
	refuses bool   // each token, of requests to the service

	mu     sync.Mutex
	asked  int      // how often for tokens
	reused int      // how often for another refresh token than the newest
	took   []string // the tokens of the requests to the service
}

func newIdentityProvider(c *testCase) *identityProvider {
	i := &identityProvider{}
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(i.serve))
	i.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return on.roots.leaf(hello.ServerName)
	}}
	i.StartTLS()
	c.t.Cleanup(i.Close)
	return i
}

func (i *identityProvider) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	n := i.asked
	if r.URL.Path == "/token" {
		if r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") != fmt.Sprint("refresh-", n-1) {
			i.reused++
		}
		i.asked++
	} else {
		i.took = append(i.took, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	i.mu.Unlock()
	if i.date != "" {
		w.Header().Set("Date", i.date)
	}
	switch {
	case r.URL.Path != "/token" && i.refuses:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path != "/token":
		_, _ = io.WriteString(w, `{"items":[]}`)
	case n > 0 && i.other != nil:
		i.other(w)
	default:
		if n > 0 && i.before != nil {
			i.before()
		}
		<-time.After(i.delay) // how long the provider thinks
		life := 3600
		if n == 0 {
			life = 30
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("access-", n), "token_type": "Bearer",
			"expires_in": life, "refresh_token": fmt.Sprint("refresh-", n)})
	}
}

// renewals returns how often it was asked for tokens after the login.
func (i *identityProvider) renewals() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked - 1
}

// reuses returns how often it was asked for another refresh token than the newest.
func (i *identityProvider) reuses() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reused
}

// used returns the tokens that the service got.
func (i *identityProvider) used() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.took)
}

func (i *identityProvider) flags() []string {
	at := strings.TrimPrefix(i.URL, "https://")
	return []string{"--resolve", "idp.good.test:443:" + at, "--resolve", "oauth.good.test:443:" + at}
}

// login returns a person who has logged in.
func (i *identityProvider) login(c *testCase) *person {
	c.t.Helper()
	p := newPerson(c.t)
	p.install("oauth")
	p.newVault()
	cmd := p.command(append([]string{"binding", "setup", "github://attacks/oauth", "--upstream-ca", on.rootsFile},
		i.flags()...)...)
	said := must.Get(cmd.StderrPipe())(c.t)
	must.Do(c.t, cmd.Start())
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		page, err := url.Parse(lines.Text())
		if err != nil || page.Scheme != "https" {
			continue
		}
		q := page.Query()
		answer := url.Values{"code": {"code-of-the-login"}, "state": {q.Get("state")}}
		r := must.Get(http.NewRequestWithContext(c.t.Context(), http.MethodGet,
			q.Get("redirect_uri")+"?"+answer.Encode(), nil))(c.t)
		res, err := http.DefaultClient.Do(r)
		must.Do(c.t, err)
		_ = res.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		c.t.Fatalf("log in: %v", err)
	}
	return p
}

// get asks the service through a session, and wants an answer of it.
func (i *identityProvider) get(c *testCase, s *session) {
	if a := i.ask(s); a.status != http.StatusOK {
		c.failf("%s %v", a, a.err)
	}
}

// ask asks the service through a session.
func (i *identityProvider) ask(s *session) answer {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return answer{err: err}
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	proxied := &testCase{s: &s.subject}
	_, _ = io.WriteString(conn, "CONNECT oauth.good.test:443 HTTP/1.1\r\nHost: oauth.good.test:443\r\n"+
		proxied.authorization()+"\r\n")
	if a := readAnswer(bufio.NewReader(conn), "CONNECT"); a.status != http.StatusOK {
		return a
	}
	inner := tls.Client(conn, &tls.Config{ServerName: "oauth.good.test", RootCAs: s.roots})
	_, _ = io.WriteString(inner, "GET /v1/items HTTP/1.1\r\nHost: oauth.good.test\r\n\r\n")
	return readAnswer(bufio.NewReader(inner), "GET")
}

// getAll asks n times at once, through each of sessions in turn.
func (i *identityProvider) getAll(c *testCase, n int, sessions ...*session) {
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() { i.get(c, sessions[k%len(sessions)]) })
	}
	all.Wait()
}
