package oauth_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// authServer is the token endpoint of these tests: it answers as a test says. The real authorization server is in e2e.
type authServer struct {
	*httptest.Server
	answer func(form url.Values) (status int, header http.Header, body string)

	mu    sync.Mutex
	forms []url.Values
	heads []http.Header
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Do(t, r.ParseForm())
		s.mu.Lock()
		s.forms, s.heads = append(s.forms, r.PostForm), append(s.heads, r.Header.Clone())
		answer := s.answer
		s.mu.Unlock()
		status, header, body := answer(r.PostForm)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// asked returns the forms that came so far.
func (s *authServer) asked() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms
}

var jsonType = http.Header{"Content-Type": {"application/json; charset=utf-8"}}

// sends makes the server answer everything with fields.
func (s *authServer) sends(status int, fields map[string]any) {
	data, _ := json.Marshal(fields)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(url.Values) (int, http.Header, string) { return status, jsonType, string(data) }
}

// token is an answer as services send it, with other fields in place of its own. A nil value removes one.
func token(other map[string]any) map[string]any {
	fields := map[string]any{"access_token": "access-token-two", "token_type": "Bearer", "expires_in": 3600,
		"refresh_token": "refresh-token-two", "scope": "read write"}
	for name, value := range other {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	return fields
}

func (s *authServer) transport() http.RoundTripper { return s.Client().Transport }

// grant is one whose login was an hour ago.
func (s *authServer) grant() oauth.Grant {
	return oauth.Grant{ID: "login-one", Method: logins.GrantCode, Token: "access-token-one", Refresh: "refresh-token-one",
		Issued: time.Now().Add(-time.Hour), Life: time.Hour, TokenURL: s.URL + "/token", Client: "client-one",
		Secret: "secret-of-the-client", Scopes: []string{"read", "write"}}
}

// noSecret fails if text has something that must be in no line.
func noSecret(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{"access-token", "refresh-token", "secret-of", "code-one", "\n", "\x00"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q has %q", text, secret)
		}
	}
}

// sealedGrant returns a vault with the login of g.
func sealedGrant(t *testing.T, g oauth.Grant) (v *vault.Vault, name string) {
	t.Helper()
	v = vault.Open(t.TempDir()+"/vault", vault.TestOnlyWorkFactor(1))
	must.Do(t, v.Init([]byte("passphrase")))
	name = "oauth2/google/work"
	b := g.Facts(vault.Binding{Name: name, Kind: "oauth2", Connector: "github://acme/google", Identity: "work"})
	must.Do(t, v.BindLogin(b, must.Get(g.Credential())(t)))
	return v, name
}
