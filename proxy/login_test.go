package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// loginFake stands for a login of package oauth, which has its own tests, and whose renewals e2e/oauth shows whole.
type loginFake struct {
	id    string
	fresh func(refused vault.Secret) error // nil: the token can be used
}

func (l *loginFake) Login() string { return l.id }

func (l *loginFake) Fresh(_ context.Context, refused vault.Secret) error {
	if l.fresh == nil {
		return nil
	}
	return l.fresh(refused)
}

// logIn makes token the secret of the world's connector, which comes from a login.
func (w *world) logIn(login Login, token string) {
	w.t.Helper()
	g := w.plane.grants.Load()
	secret := must.Get(vault.NewSecret([]byte(token)))(w.t)
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: scrub.NewSet([]scrub.Credential{
		{Secret: []byte("token-of-the-morning")}, {Secret: []byte("token-of-the-evening")}}),
		Bound: map[spec.FQN]Bound{"github://acme/tracker": {Binding: "bearer/tracker/test", Login: login,
			Credential: vault.Credential{Kind: "bearer", Secret: secret}}}})
}

// A token that the service does not accept is renewed, and the request is sent once more where that is safe.
func TestARefusedTokenIsRenewedAndTheRequestRepeated(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 %v", h2), func(t *testing.T) {
			w := newWorldOf(t, h2, func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer token-of-the-evening" {
					rw.WriteHeader(http.StatusUnauthorized)
				}
				fmt.Fprint(rw, r.Header.Get("Authorization"))
			})
			login, renewals, works := &loginFake{id: "login-one"}, 0, true
			login.fresh = func(refused vault.Secret) error {
				if refused.IsZero() {
					return nil
				}
				if renewals++; works {
					w.logIn(login, "token-of-the-evening")
				}
				return nil
			}
			const items = "https://api.good.example/v1/items"
			w.logIn(login, "token-of-the-morning")
			res, body := w.do("GET", items, "")
			if res.StatusCode != 200 || renewals != 1 || strings.Contains(body, "token-of") {
				t.Errorf("got %d %s, with %d renewals", res.StatusCode, body, renewals)
			}
			var tokens []string
			for _, r := range w.requests() {
				tokens = append(tokens, r.Header.Get("Authorization"))
			}
			if !slices.Equal(tokens, []string{"Bearer token-of-the-morning", "Bearer token-of-the-evening"}) {
				t.Errorf("the service got %q", tokens)
			}
			if row := w.last(); row.Fields["renewed"] != true || row.Status != 200 {
				t.Errorf("the row has %d, %v", row.Status, row.Fields)
			}

			// What may have had an effect is not repeated, and the next request has another token.
			works = false
			w.logIn(login, "token-of-the-morning")
			if res, _ := w.do("POST", items, `{"title":"twice?"}`); res.StatusCode != 401 || renewals != 2 {
				t.Errorf("a POST got %d, with %d renewals", res.StatusCode, renewals)
			}
			works = true
			if res, _ := w.do("GET", items+"/7", ""); res.StatusCode != 401 || renewals != 3 { // not declared idempotent
				t.Errorf("a GET got %d, with %d renewals", res.StatusCode, renewals)
			}
			// Without another token the answer is that of the service.
			works = false
			w.logIn(login, "token-of-the-morning")
			if res, body := w.do("GET", items, ""); res.StatusCode != 401 || strings.Contains(body, "token-of") {
				t.Errorf("without another token: %d %s", res.StatusCode, body)
			}
			if n := len(w.requests()); n != 5 {
				t.Errorf("the service got %d requests", n)
			}
		})
	}
}

// A credential may not be there yet: its request waits for it, and is not sent without.
func TestACredentialThatIsNotThereYetIsADenial(t *testing.T) {
	w := newWorld(t, hello)
	const items = "https://api.good.example/v1/items"
	login := &loginFake{id: "login-one", fresh: func(vault.Secret) error { return nil }}
	g := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub, Bound: map[spec.FQN]Bound{"github://acme/tracker": {
		Binding: "bearer/tracker/test", Login: login, Credential: vault.Credential{Kind: "bearer"}}}})
	res, body := w.do("GET", items, "")
	if res.StatusCode != 503 || !strings.Contains(body, string(ReasonRenewal)) || len(w.requests()) != 0 {
		t.Errorf("got %d %s, and %d requests were sent", res.StatusCode, body, len(w.requests()))
	}
	login.fresh = func(vault.Secret) error {
		w.logIn(login, "token-of-the-morning")
		return nil
	}
	if res, body := w.do("GET", items, ""); res.StatusCode != 200 {
		t.Errorf("with a credential: %d %s", res.StatusCode, body)
	}
}

// Where there is no token, nothing is sent, and the sandbox is told what helps.
func TestWhatKeepsATokenFromBeingRenewedHasItsReason(t *testing.T) {
	w := newWorld(t, hello)
	const rebind = "aileron binding rebind bearer/tracker/test"
	for _, c := range []struct {
		err    error
		status int
		reason Reason
		says   string
	}{
		{fmt.Errorf("renew it: %w", vault.ErrLocked), 503, ReasonVaultLocked, "aileron vault unlock"},
		{fmt.Errorf("renew it: %w", vault.ErrLoginNeeded), 403, ReasonCredential, rebind},
		{errors.New("accounts.example: it answered SECRET"), 503, ReasonRenewal, "Wait a minute"},
	} {
		w.logIn(&loginFake{id: "login-one", fresh: func(vault.Secret) error { return c.err }}, "token-of-the-morning")
		res, body := w.do("GET", "https://api.good.example/v1/items", "")
		if res.StatusCode != c.status || !strings.Contains(body, string(c.reason)) || !strings.Contains(body, c.says) ||
			strings.Contains(body, "SECRET") {
			t.Errorf("%v: %d %s", c.err, res.StatusCode, body)
		}
		if row := w.last(); row.Reason != string(c.reason) || row.Binding != "bearer/tracker/test" {
			t.Errorf("%v: the row has %q, %q", c.err, row.Reason, row.Binding)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A connector that changes while an exchange waits for a token does not get a request that it no longer allows.
func TestAnExchangeThatWaitedIsNotSentUnderWhatChanged(t *testing.T) {
	w := newWorld(t, hello)
	login := &loginFake{id: "login-one"}
	login.fresh = func(vault.Secret) error {
		login.fresh = nil
		w.logIn(login, "token-of-the-evening")
		g := w.plane.grants.Load()
		none := must.Get(spec.NewIndex(nil))(t)
		w.plane.SetGrants(&Grants{Index: none, Scrub: g.Scrub, Bound: g.Bound})
		return nil
	}
	w.logIn(login, "token-of-the-morning")
	res, body := w.do("GET", "https://api.good.example/v1/items", "")
	if res.StatusCode != 503 || !strings.Contains(body, string(ReasonRenewal)) ||
		!strings.Contains(body, "grant changed") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A renewal replaces the grants, and changes nothing that a client of a tunnel may do.
func TestIdleTunnelsOutliveARenewal(t *testing.T) {
	w := newWorld(t, hello)
	login := &loginFake{id: "login-one"}
	renewed := func(id, token string) *Grants {
		g := w.plane.grants.Load()
		login.id = id
		fqn := spec.FQN("github://acme/good")
		return &Grants{Index: g.Index, Scrub: g.Scrub, Bound: map[spec.FQN]Bound{fqn: {Binding: "oauth2/good/default",
			Login: login, Credential: vault.Credential{Kind: "oauth2", Secret: must.Get(vault.NewSecret([]byte(token)))(t)}}}}
	}
	w.plane.SetGrants(renewed("login-one", "access-token-one"))
	before := w.plane.Grants()
	w.plane.SetGrants(renewed("login-one", "access-token-two"))
	if err := before.InForce().Err(); err != nil || w.plane.Grants() == before {
		t.Errorf("a renewal ended what began before it: %v", err)
	}
	w.plane.SetGrants(renewed("login-two", "access-token-two"))
	if before.InForce().Err() == nil {
		t.Error("another login in the same binding ended nothing")
	}
}
