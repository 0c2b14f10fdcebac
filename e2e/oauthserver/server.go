package main

import (
	"crypto/rand"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/handler/pkce"
	"github.com/ory/fosite/token/hmac"
)

// server answers the requests of clients, browsers and devices.
type server struct {
	options
	store    *store
	strategy oauth2.CoreStrategy
	provider *fosite.Fosite
}

func newServer(o options) (*server, error) {
	st, err := newStore(o.clients)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	config := &fosite.Config{
		GlobalSecret: key, AccessTokenLifespan: o.ttl, EnforcePKCE: true,
		RefreshTokenScopes: []string{}, // every login gets a refresh token
		ScopeStrategy:      func([]string, string) bool { return true },
	}
	core := recorder{oauth2.NewHMACSHAStrategy(&hmac.HMACStrategy{Config: config}, config), st}
	helper := &oauth2.HandleHelper{AccessTokenStrategy: core, AccessTokenStorage: st, Config: config}
	code := &oauth2.AuthorizeExplicitGrantHandler{AccessTokenStrategy: core, RefreshTokenStrategy: core,
		AuthorizeCodeStrategy: core, CoreStorage: st, TokenRevocationStorage: st, Config: config}
	proof := &pkce.Handler{AuthorizeCodeStrategy: core, Storage: st, Config: config}
	config.AuthorizeEndpointHandlers = fosite.AuthorizeEndpointHandlers{code, proof}
	config.TokenEndpointHandlers = fosite.TokenEndpointHandlers{code, proof,
		&oauth2.RefreshTokenGrantHandler{AccessTokenStrategy: core, RefreshTokenStrategy: core,
			TokenRevocationStorage: st, Config: config},
		&oauth2.ClientCredentialsGrantHandler{HandleHelper: helper, Config: config},
		&deviceHandler{helper, core, st, o},
	}
	config.RevocationHandlers = fosite.RevocationHandlers{&oauth2.TokenRevocationHandler{TokenRevocationStorage: st,
		RefreshTokenStrategy: core, AccessTokenStrategy: core}}
	return &server{o, st, core, fosite.NewOAuth2Provider(st, config)}, nil
}

func (s *server) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/authorize", s.authorize)
	m.HandleFunc("/o/oauth2/v2/auth", s.authorize) // as Google's is called
	m.HandleFunc("POST /token", s.token)
	m.HandleFunc("POST /revoke", s.revoke)
	m.HandleFunc("POST /device_authorization", s.authorizeDevice)
	m.HandleFunc("/device", s.device)
	m.HandleFunc("GET /api/me", s.me)
	m.HandleFunc("GET /api/stream", s.stream)
	const gmail = "GET /gmail/v1/users/me/"
	m.HandleFunc(gmail+"profile", s.profile)
	m.HandleFunc(gmail+"messages/{message}/attachments/{id}", s.stream)
	return m
}

// consent is the page of /authorize and /device. It sends its form to its own address.
var consent = template.Must(template.New("consent").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in</title></head><body>
<h1>{{.Client}} asks for access</h1>
<form method="post">
<p><label>Login <input name="login" autocomplete="off" required autofocus></label></p>
{{range .Scopes}}<p><label><input type="checkbox" name="granted" value="{{.}}" checked> {{.}}</label></p>
{{end}}<p><button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button></p>
</form></body></html>
`))

func showConsent(w http.ResponseWriter, client string, scopes []string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = consent.Execute(w, struct {
		Client string
		Scopes []string
	}{client, scopes})
}

// authorize asks the person (GET), and redirects with a code when they allow it (POST).
func (s *server) authorize(w http.ResponseWriter, r *http.Request) {
	s.store.registerLoopback(r.FormValue("client_id"), r.FormValue("redirect_uri"))
	w = &issuing{w, s.iss}
	ctx := r.Context()
	ar, err := s.provider.NewAuthorizeRequest(ctx, r)
	if err != nil {
		s.provider.WriteAuthorizeError(ctx, w, ar, err)
		return
	}
	if r.Method != http.MethodPost {
		showConsent(w, ar.GetClient().GetID(), ar.GetRequestedScopes())
		return
	}
	login := r.PostFormValue("login")
	if r.PostFormValue("decision") != "allow" || login == "" {
		s.provider.WriteAuthorizeError(ctx, w, ar, fosite.ErrAccessDenied)
		return
	}
	for _, scope := range r.PostForm["granted"] {
		if ar.GetRequestedScopes().Has(scope) {
			ar.GrantScope(scope)
		}
	}
	response, err := s.provider.NewAuthorizeResponse(ctx, ar, &fosite.DefaultSession{Subject: login})
	if err != nil {
		s.provider.WriteAuthorizeError(ctx, w, ar, err)
		return
	}
	s.provider.WriteAuthorizeResponse(ctx, w, ar, response)
}

// issuing adds the issuer to the redirects of a response (RFC 9207 section 2), errors included.
type issuing struct {
	http.ResponseWriter
	iss string
}

// WriteHeader sends the header.
func (w *issuing) WriteHeader(status int) {
	if to, err := url.Parse(w.Header().Get("Location")); err == nil && to.Host != "" && w.iss != "" {
		query := to.Query()
		query.Set("iss", w.iss)
		to.RawQuery = query.Encode()
		w.Header().Set("Location", to.String())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (s *server) token(w http.ResponseWriter, r *http.Request) {
	s.store.count(func(c *counts) { c.TokenRequests++ })
	ctx := r.Context()
	ar, err := s.provider.NewAccessRequest(ctx, r, &fosite.DefaultSession{})
	if err != nil {
		s.provider.WriteAccessError(ctx, w, ar, err)
		return
	}
	if ar.GetGrantTypes().ExactOne(string(fosite.GrantTypeClientCredentials)) {
		ar.GetSession().(*fosite.DefaultSession).Subject = ar.GetClient().GetID()
		for _, scope := range ar.GetRequestedScopes() {
			ar.GrantScope(scope)
		}
	}
	response, err := s.provider.NewAccessResponse(ctx, ar)
	if err != nil {
		s.provider.WriteAccessError(ctx, w, ar, err)
		return
	}
	select {
	case <-time.After(s.slow):
		s.provider.WriteAccessResponse(ctx, w, ar, response)
	case <-ctx.Done(): // the client has gone, and its refresh token is used up
	}
}

func (s *server) revoke(w http.ResponseWriter, r *http.Request) {
	s.store.count(func(c *counts) { c.Revocations++ })
	err := s.provider.NewRevocationRequest(r.Context(), r)
	s.provider.WriteRevocationResponse(r.Context(), w, err)
}
