package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// with returns an answer with a token as services send it, but for one field. A nil value removes it.
func with(name string, value any) string {
	data, _ := json.Marshal(token(map[string]any{name: value})) // of texts and numbers
	return string(data)
}

// What cannot be a token is refused in one line, which has no byte of what was sent or answered.
func TestAnAnswerThatIsNoTokenIsRefused(t *testing.T) {
	s := newAuthServer(t)
	html := http.Header{"Content-Type": {"text/html"}}
	plain := http.Header{"Content-Type": {"text/plain"}}
	gzip := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	away := http.Header{"Location": {"https://elsewhere.example/"}}
	const noAccess, noRefresh = "no access token that can be used", "no refresh token that can be used"
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		want   string
	}{
		"HTML":       {200, html, "<html>access-token", "with 200 and something else than JSON"},
		"form":       {200, plain, "access_token=access-token-two&token_type=bearer", "something else than JSON"},
		"1 MiB":      {200, jsonType, `{"access_token":"` + strings.Repeat("x", 1<<20) + `"}`, "longer than 64 KiB"},
		"half":       {200, jsonType, `{"access_token":"access-token-two","tok`, "JSON that cannot be read"},
		"two":        {200, jsonType, `{}{}`, "JSON that cannot be read"},
		"compressed": {200, gzip, "\x1f\x8b", "compressed"},
		"redirect":   {302, away, "", "redirect (302)"},
		"500":        {500, jsonType, `{}`, "answered with 500"},
		"mac":        {200, jsonType, with("token_type", "mac"), "another type than Bearer"},
		"no type":    {200, jsonType, with("token_type", nil), "another type than Bearer"},
		"no token":   {200, jsonType, with("access_token", nil), noAccess},
		"number":     {200, jsonType, with("access_token", 1234567890123), noAccess},
		"CR":         {200, jsonType, with("access_token", "access-token\r\nX: y"), noAccess},
		"NUL":        {200, jsonType, with("access_token", "access-token\x00"), noAccess},
		"line end":   {200, jsonType, with("access_token", "access-token-two\n"), noAccess},
		"space":      {200, jsonType, with("refresh_token", "refresh token"), noRefresh},
		"not ASCII":  {200, jsonType, with("refresh_token", "refresh-tokén"), noRefresh},
		"refused": {400, jsonType, `{"error":"invalid_grant","error_description":"Token\nwas revoked"}`,
			"refused with invalid_grant"},
		"refused with 200": {200, jsonType, with("error", "bad_verification_code"), "refused with an error of its own"},
		"echo": {400, jsonType, `{"error":"refresh-token-one","error_description":"refresh-token-one"}`,
			"an error of its own"},
		"echo type": {200, http.Header{"Content-Type": {"text/refresh-token-one"}}, "", "something else than JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s.answer = func(url.Values) (int, http.Header, string) { return c.status, c.header, c.body }
			_, err := s.grant().Renew(t.Context(), s.transport(), nil)
			host := strings.TrimPrefix(s.URL, "https://")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), host) {
				t.Fatalf("%v, want the host and %q", err, c.want)
			}
			noSecret(t, err.Error())
		})
	}
}

// What services send and the RFC does not have, or leaves open.
func TestAnAnswerIsReadAsServicesSendIt(t *testing.T) {
	s := newAuthServer(t)
	const old, fresh = "refresh-token-one", "refresh-token-two"
	for name, c := range map[string]struct {
		field  string
		value  any
		life   time.Duration
		token  string
		scopes string
	}{
		"whole":                 {"token_type", "bearer", time.Hour, fresh, ""},
		"no new refresh token":  {"refresh_token", nil, time.Hour, old, ""},
		"an empty one":          {"refresh_token", "", time.Hour, old, ""},
		"the same one":          {"refresh_token", old, time.Hour, old, ""},
		"text":                  {"expires_in", "120", 2 * time.Minute, fresh, ""},
		"no time":               {"expires_in", nil, time.Hour, fresh, ""},
		"0":                     {"expires_in", 0, time.Hour, fresh, ""},
		"-1":                    {"expires_in", -1, time.Hour, fresh, ""},
		"1e18":                  {"expires_in", 1e18, time.Hour, fresh, ""},
		"a word":                {"expires_in", "soon", time.Hour, fresh, ""},
		"no scope":              {"scope", nil, time.Hour, fresh, ""},
		"scopes in other order": {"scope", "write read", time.Hour, fresh, ""},
		"fewer":                 {"scope", "read", time.Hour, fresh, "read"},
		"commas":                {"scope", "read,write,admin", time.Hour, fresh, "admin read write"},
	} {
		t.Run(name, func(t *testing.T) {
			s.sends(200, token(map[string]any{c.field: c.value}))
			g := must.Get(s.grant().Renew(t.Context(), s.transport(), nil))(t)
			if g.Life != c.life || g.Refresh != c.token || g.Keeps != (c.token == old) ||
				string(g.Facts(vault.Binding{}).Granted) != c.scopes {
				t.Errorf("life %v, refresh token %s (kept: %v), granted %q", g.Life, g.Refresh, g.Keeps, g.Granted)
			}
			if g.ID != "login-one" || !g.Renewed || g.Token != "access-token-two" {
				t.Errorf("it is another login: %s", g.ID)
			}
		})
	}
}

// The secret of a client stands in the body, or where the service wants it: RFC 6749 section 2.3.1.
func TestTheSecretOfAClientStandsWhereTheServiceWantsIt(t *testing.T) {
	s := newAuthServer(t)
	s.answer = func(form url.Values) (int, http.Header, string) {
		if form.Has("client_secret") {
			return 401, jsonType, `{"error":"invalid_client"}`
		}
		return 200, jsonType, `{"access_token":"access-token-two","token_type":"bearer"}`
	}
	g := must.Get(s.grant().Renew(t.Context(), s.transport(), nil))(t)
	if id, secret, ok := (&http.Request{Header: s.heads[1]}).BasicAuth(); !ok || id != "client-one" ||
		secret != "secret-of-the-client" || !g.InHeader {
		t.Errorf("the second attempt has %v", s.heads[1])
	}
	must.Get(g.Renew(t.Context(), s.transport(), nil))(t)
	if len(s.asked()) != 3 {
		t.Errorf("%d requests; the place that the service wants was forgotten", len(s.asked()))
	}
	public := s.grant()
	public.Secret = ""
	s.sends(401, map[string]any{"error": "invalid_client"})
	if _, err := public.Renew(t.Context(), s.transport(), nil); err == nil || len(s.asked()) != 4 {
		t.Errorf("a client without a secret asked %d times: %v", len(s.asked())-3, err)
	}
}

func TestAClientIsItsOwnOwner(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(map[string]any{"refresh_token": nil}))
	server := oauth.Server{OAuth2: spec.OAuth2{Grant: logins.GrantClient, TokenURL: s.URL, ClientID: "client-one",
		ClientSecret: "secret-of-the-client", Scopes: []string{"read", "write"}}, Transport: s.transport()}
	g := must.Get(server.Client(t.Context()))(t)
	form := s.asked()[0]
	if form.Get("grant_type") != "client_credentials" || form.Get("scope") != "read write" ||
		form.Get("client_id") != "client-one" {
		t.Errorf("asked with %v", form)
	}
	again := must.Get(g.Renew(t.Context(), s.transport(), nil))(t)
	if again.ID != g.ID || again.Token != "access-token-two" {
		t.Error("it is not renewed by another request of the client")
	}
}

func TestARevocationEndsTheRefreshToken(t *testing.T) {
	s := newAuthServer(t)
	s.answer = func(url.Values) (int, http.Header, string) { return 200, nil, "" }
	g := s.grant()
	if told, err := g.Revoke(t.Context(), s.transport()); told || err != nil || len(s.asked()) != 0 {
		t.Errorf("without a place for it: %v, %v", told, err)
	}
	g.RevokeURL = s.URL + "/revoke"
	if told, err := g.Revoke(t.Context(), s.transport()); !told || err != nil {
		t.Errorf("%v, %v", told, err)
	}
	if form := s.asked()[0]; form.Get("token") != "refresh-token-one" || form.Get("token_type_hint") != "refresh_token" {
		t.Errorf("what was revoked: %v", form)
	}
	s.answer = func(url.Values) (int, http.Header, string) { return 503, nil, "access-token" }
	told, err := g.Revoke(t.Context(), s.transport())
	if told || err == nil || !strings.HasSuffix(err.Error(), "answered with 503") {
		t.Errorf("%v, %v", told, err)
	}
}

// A service that narrows the scopes, says nothing of them in the next answer, and then widens them again.
func TestTheGrantedScopesAreThoseOfTheLastAnswerThatHasThem(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	for _, c := range []struct {
		scope any
		want  string
	}{{"read", "read"}, {nil, "read"}, {"write read", ""}, {nil, ""}} {
		s.sends(200, token(map[string]any{"scope": c.scope}))
		g = must.Get(g.Renew(t.Context(), s.transport(), nil))(t)
		if got := string(g.Facts(vault.Binding{}).Granted); got != c.want {
			t.Errorf("after %v: granted %q, want %q", c.scope, got, c.want)
		}
	}
}
