package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A redirect of a native application, with a port that the server has not seen before.
const redirect = "http://localhost:41234/callback"

// asked is a client of the server that does what aileron does.
type asked struct {
	*authserver.Server
	t *testing.T
}

// answer is what the token endpoint answers.
type answer struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	Scope        string
	ExpiresIn    int `json:"expires_in"`
	Error        string
	DeviceCode   string `json:"device_code"`
	Complete     string `json:"verification_uri_complete"`
}

// post sends a form, with name and value by turns.
func (a asked) post(path string, fields ...string) (got answer) {
	a.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	body := a.Post(a.t, "https://"+authserver.Accounts+path, form).Body
	if len(body) > 0 {
		must.Do(a.t, json.Unmarshal(body, &got))
	}
	return got
}

// authorize asks for a code, and returns the parameters of the redirect.
func (a asked) authorize(login string, more ...string) url.Values {
	a.t.Helper()
	q := url.Values{"response_type": {"code"}, "client_id": {authserver.Public}, "redirect_uri": {redirect},
		"state": {"a-state-of-some-length"}, "scope": {"read send"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	to := must.Get(url.Parse(a.LogIn(a.t, "https://"+authserver.Accounts+"/authorize?"+q.Encode(), login, "read")))(a.t)
	if !strings.HasPrefix(to.String(), redirect+"?") {
		a.t.Fatalf("the browser ends at %s", to)
	}
	return to.Query()
}

const verifier = "a-verifier-of-at-least-43-characters-0123456789"

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// logIn returns the tokens of a login.
func (a asked) logIn(login string) answer {
	a.t.Helper()
	code := a.authorize(login, "code_challenge", challenge(), "code_challenge_method", "S256").Get("code")
	return a.post("/token", "grant_type", "authorization_code", "client_id", authserver.Public, "code", code,
		"redirect_uri", redirect, "code_verifier", verifier)
}

func (a asked) refresh(token string) answer {
	a.t.Helper()
	return a.post("/token", "grant_type", "refresh_token", "client_id", authserver.Public, "refresh_token", token)
}

// me asks the API, and returns the status and the login.
func (a asked) me(token string) (int, string) {
	a.t.Helper()
	req := must.Get(http.NewRequest(http.MethodGet, "https://"+authserver.API("mail")+"/api/me?echo=1", nil))(a.t)
	req.Header.Set("Authorization", "Bearer "+token)
	res := a.Do(a.t, req)
	var got struct {
		Login string
		Echo  string `json:"token_echo"`
	}
	if res.Status == http.StatusOK {
		must.Do(a.t, json.Unmarshal(res.Body, &got))
		if got.Echo != token {
			a.t.Errorf("the API echoes %q", got.Echo)
		}
	} else if !strings.Contains(res.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
		a.t.Errorf("the API refuses with %q", res.Header.Get("WWW-Authenticate"))
	}
	return res.Status, got.Login
}

// What the other tests depend on: a server that takes what it should refuse proves nothing.
func TestTheServerIsStrict(t *testing.T) {
	t.Parallel()
	const iss = "https://" + authserver.Accounts
	a := asked{authserver.Start(t, authserver.Options{Build: server, Iss: iss, Pause: time.Hour}), t}

	t.Run("the proof of a login", func(t *testing.T) {
		for name, more := range map[string][]string{"none": nil,
			"plain": {"code_challenge", verifier, "code_challenge_method", "plain"}} {
			if q := a.authorize("eve", more...); q.Get("error") != "invalid_request" || q.Has("code") || q.Get("iss") != iss {
				t.Errorf("%s: %v", name, q)
			}
		}
		if q := a.authorize(""); q.Get("error") != "access_denied" || q.Get("iss") != iss {
			t.Errorf("denied: %v", q)
		}
		q := a.authorize("eve", "code_challenge", challenge(), "code_challenge_method", "S256")
		if got := a.post("/token", "grant_type", "authorization_code", "client_id", authserver.Public, "code", q.Get("code"),
			"redirect_uri", redirect, "code_verifier", strings.ToUpper(verifier)); got.Error != "invalid_grant" {
			t.Errorf("another verifier: %+v", got)
		}
	})

	t.Run("rotation", func(t *testing.T) {
		first := a.logIn("ann")
		if first.Scope != "read" || first.ExpiresIn < 3590 || first.RefreshToken == "" {
			t.Errorf("the first tokens: scope %q, %d s", first.Scope, first.ExpiresIn)
		}
		second := a.refresh(first.RefreshToken)
		third := a.refresh(second.RefreshToken)
		for _, token := range []string{first.AccessToken, third.AccessToken} {
			if status, login := a.me(token); status != http.StatusOK || login != "ann" {
				t.Errorf("before a reuse: %d, %q", status, login)
			}
		}
		if state := a.State(t); state.Reuses != 0 || state.Refreshes != 2 || state.Logins["ann"].Refresh != 1 {
			t.Errorf("before a reuse: %+v", state)
		}
		if got := a.refresh(first.RefreshToken); got.Error != "invalid_grant" {
			t.Errorf("a token that was rotated: %+v", got)
		}
		if got := a.refresh(third.RefreshToken); got.Error != "invalid_grant" {
			t.Errorf("the newest of the family: %+v", got)
		}
		if status, _ := a.me(third.AccessToken); status != http.StatusUnauthorized {
			t.Errorf("an access token of the family: %d", status)
		}
		if state := a.State(t); state.Reuses != 1 || state.Logins["ann"].Access+state.Logins["ann"].Refresh != 0 {
			t.Errorf("after a reuse: %+v", state)
		}
		for _, token := range []string{first.AccessToken, third.RefreshToken} {
			if !slices.Contains(a.Secrets(t), token) {
				t.Error("a token is not among the secrets")
			}
		}
	})

	t.Run("the ends of tokens", func(t *testing.T) {
		of := a.logIn("bob")
		a.Expire(t)
		if status, _ := a.me(of.AccessToken); status != http.StatusUnauthorized {
			t.Errorf("expired: %d", status)
		}
		of = a.refresh(of.RefreshToken)
		a.post("/revoke", "client_id", authserver.Public, "token", of.RefreshToken)
		if status, _ := a.me(of.AccessToken); status != http.StatusUnauthorized {
			t.Errorf("revoked by the client: %d", status)
		}
		if state := a.State(t); state.Revocations != 1 || state.Logins["bob"].Refresh != 0 {
			t.Errorf("revoked by the client: %+v", state)
		}
		of = a.logIn("bob")
		a.Revoke(t, "bob")
		if got := a.refresh(of.RefreshToken); got.Error != "invalid_grant" {
			t.Errorf("revoked by the server: %+v", got)
		}
	})

	t.Run("a machine", func(t *testing.T) {
		for secret, want := range map[string]string{authserver.MachSecret: "", "a wrong secret": "invalid_client"} {
			got := a.post("/token", "grant_type", "client_credentials", "client_id", authserver.Machine,
				"client_secret", secret, "scope", "read")
			if got.Error != want || want == "" && (got.Scope != "read" || got.RefreshToken != "") {
				t.Errorf("%+v, want the error %q", got, want)
			}
		}
	})

	t.Run("a device", func(t *testing.T) {
		for login, want := range map[string]string{"cem": "", "": "access_denied"} {
			d := a.post("/device_authorization", "client_id", authserver.Public, "scope", "read")
			poll := func() answer {
				return a.post("/token", "grant_type", "urn:ietf:params:oauth:grant-type:device_code",
					"client_id", authserver.Public, "device_code", d.DeviceCode)
			}
			if got := poll(); got.Error != "authorization_pending" {
				t.Errorf("before the person decides: %+v", got)
			}
			if got := poll(); got.Error != "slow_down" {
				t.Errorf("asked at once again: %+v", got)
			}
			form := url.Values{"login": {login}, "decision": {"allow"}, "granted": {"read"}}
			a.Post(t, d.Complete, form)
			got := poll()
			if got.Error != want || want == "" && (got.Scope != "read" || got.RefreshToken == "") {
				t.Errorf("after the person decided: %+v, want the error %q", got, want)
			}
			if got := poll(); want == "" && got.Error != "invalid_grant" {
				t.Errorf("a code that was used: %+v", got)
			}
			if got := a.refresh(got.RefreshToken); want == "" && got.RefreshToken == "" {
				t.Errorf("a refresh of a device's token: %+v", got)
			}
		}
	})
}
