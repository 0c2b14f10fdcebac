package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"
)

// eventPause is the pause between two events of a stream.
const eventPause = 50 * time.Millisecond

// bearer returns the login of a request's access token, and the token. If it is missing, unknown, revoked or expired,
// it answers the request (RFC 6750 section 3), and login is "".
func (s *server) bearer(w http.ResponseWriter, r *http.Request) (login, token string) {
	s.store.count(func(c *counts) { c.APIRequests++ })
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	challenge := `Bearer realm="oauthserver"`
	if ok {
		req, err := s.store.GetAccessTokenSession(r.Context(), s.strategy.AccessTokenSignature(r.Context(), token), nil)
		if err == nil {
			err = s.strategy.ValidateAccessToken(r.Context(), req, token)
		}
		if err == nil {
			s.remember(req.GetSession().GetSubject(), token)
			return req.GetSession().GetSubject(), token
		}
		challenge += `, error="invalid_token", error_description="The access token expired, or is not known"`
	}
	s.store.count(func(c *counts) { c.APIRefusals++ })
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, `{"error": "unauthorized"}`, http.StatusUnauthorized)
	return "", ""
}

// remember records that a login used a token.
func (s *server) remember(login, token string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if !slices.Contains(s.store.used[login], token) {
		s.store.used[login] = append(s.store.used[login], token)
	}
}

// me returns the login, and with echo=1 the token too, as a service that has no regard for it would.
func (s *server) me(w http.ResponseWriter, r *http.Request) {
	login, token := s.bearer(w, r)
	if login == "" {
		return
	}
	answer := map[string]string{"login": login}
	if r.FormValue("echo") == "1" {
		answer["token_echo"] = token
	}
	writeJSON(w, answer)
}

// profile returns the login as Gmail does, with the token in the place of a number.
func (s *server) profile(w http.ResponseWriter, r *http.Request) {
	if login, token := s.bearer(w, r); login != "" {
		writeJSON(w, map[string]string{"emailAddress": login, "historyId": token})
	}
}

// stream sends events until the client leaves. With echo=1, and as an attachment of Gmail, each has the access tokens
// that the login has used until then, in this request or another one. A stream goes on when its token expires.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	login, _ := s.bearer(w, r)
	if login == "" {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	for n := 1; ; n++ {
		event := map[string]any{"n": n, "login": login}
		if r.FormValue("echo") == "1" || r.PathValue("message") != "" {
			s.store.mu.Lock()
			event["tokens"] = slices.Clone(s.store.used[login])
			s.store.mu.Unlock()
		}
		text, _ := json.Marshal(event)
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// adminRoutes are for the test alone: they have a listener of their own.
func (s *server) adminRoutes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /admin/state", s.state)
	m.HandleFunc("GET /admin/secrets", func(w http.ResponseWriter, _ *http.Request) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		writeJSON(w, s.store.secrets)
	})
	m.HandleFunc("POST /admin/revoke", func(_ http.ResponseWriter, r *http.Request) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		s.store.revoke(func(g *grant) bool { return g.GetSession().GetSubject() == r.FormValue("login") })
	})
	m.HandleFunc("POST /admin/expire", func(http.ResponseWriter, *http.Request) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		for _, g := range s.store.access {
			g.revoked = true
		}
	})
	return m
}

// live are the numbers of tokens of a login that still open something.
type live struct {
	Access  int `json:"access"`
	Refresh int `json:"refresh"`
}

// state returns what happened, and which tokens are live.
func (s *server) state(w http.ResponseWriter, _ *http.Request) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	logins := map[string]live{}
	for _, g := range s.store.access {
		of := logins[g.GetSession().GetSubject()]
		if !g.dead(fosite.AccessToken) {
			of.Access++
		}
		logins[g.GetSession().GetSubject()] = of
	}
	for _, g := range s.store.refresh {
		if !g.dead(fosite.RefreshToken) {
			of := logins[g.GetSession().GetSubject()]
			of.Refresh++
			logins[g.GetSession().GetSubject()] = of
		}
	}
	writeJSON(w, struct {
		counts
		Logins map[string]live `json:"logins"`
	}{s.store.counts, logins})
}
