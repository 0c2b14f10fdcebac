package sweep

import (
	"encoding/json"
	"io"
	"net/http"
	"syscall"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// token answers a request for a token: that of the login lives for less than the margin, the first renewal fails, and
// all that follow are the next token. Errors repeat what was sent.
func (o *origin) token(w http.ResponseWriter, r *http.Request) {
	sent := must.Get(io.ReadAll(r.Body))(o.t)
	w.Header().Set("Content-Type", "application/json")
	o.mu.Lock()
	o.asked++
	n := o.asked
	o.mu.Unlock()
	answer := map[string]any{"access_token": o.c.secret("next access token"), "token_type": "Bearer", "expires_in": 3600}
	switch n {
	case 1:
		answer["access_token"], answer["expires_in"] = o.c.secret("access token"), 30
	case 2:
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]any{"error": "slow", "error_description": string(sent)}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// logIn logs in, and sends requests until the token was renewed, which fails first.
func (p *person) logIn() {
	p.t.Helper()
	p.must("connector", "install", "testdata/connectors/login", "--yes")
	p.must(append([]string{"binding", "setup", fqn("login"), "--client-id", "sweep", "--client-secret-file",
		p.give("client", p.canary.secret("client secret"))}, p.reach()...)...)
	s := p.serve()
	client := s.client(false)
	defer client.CloseIdleConnections()
	harness.WaitFor(p.t, "a token is renewed", func() bool {
		r := must.Get(http.NewRequestWithContext(p.t.Context(), http.MethodGet, "https://login.sweep.test/v1/login",
			nil))(p.t)
		res, err := client.Do(r)
		must.Do(p.t, err)
		_, err = io.Copy(io.Discard, res.Body)
		must.Do(p.t, err)
		_ = res.Body.Close()
		for _, row := range p.rows() {
			if row.Event == audit.EventBindingRefreshed {
				return true
			}
		}
		return false
	})
	for _, verb := range [][]string{{"binding", "list"}, {"binding", "inspect", "oauth2/login/default"}} {
		p.must(verb...)
		p.must(append(verb, "--json")...)
	}
	s.end(syscall.SIGTERM)
	p.must(append([]string{"binding", "revoke", "oauth2/login/default", "--yes"}, p.reach()...)...)
	p.must("connector", "remove", fqn("login"))
}
