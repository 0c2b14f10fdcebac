package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
)

// deviceGrant is the grant type of RFC 8628 section 3.4. fosite does not have it: this file is written for the tests.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

const deviceLifetime = 10 * time.Minute

// device is a device code, and what the person decided.
type device struct {
	userCode, client string
	asked, granted   []string // scopes
	login            string
	decided          string // "": not yet; allow, deny
	ends, polled     time.Time
}

// authorizeDevice issues a device code (RFC 8628 section 3.2).
func (s *server) authorizeDevice(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	client, err := s.provider.AuthenticateClient(r.Context(), r, r.PostForm)
	if err != nil {
		s.provider.WriteAccessError(r.Context(), w, fosite.NewAccessRequest(nil), err)
		return
	}
	code, user := rand.Text(), rand.Text()[:8]
	user = user[:4] + "-" + user[4:]
	s.store.issued(code)
	s.store.mu.Lock()
	s.store.devices[code] = &device{userCode: user, client: client.GetID(), ends: time.Now().Add(deviceLifetime),
		asked: strings.Fields(r.PostForm.Get("scope"))}
	s.store.mu.Unlock()
	page := s.issuer + "/device"
	writeJSON(w, map[string]any{"device_code": code, "user_code": user, "verification_uri": page,
		"verification_uri_complete": page + "?user_code=" + url.QueryEscape(user),
		"expires_in":                int(deviceLifetime.Seconds()), "interval": int(s.interval.Seconds())})
}

// device asks the person about the device code whose user code is in the query.
func (s *server) device(w http.ResponseWriter, r *http.Request) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	var d *device
	for _, one := range s.store.devices {
		if one.userCode == r.FormValue("user_code") && one.decided == "" && time.Now().Before(one.ends) {
			d = one
		}
	}
	switch login := r.PostFormValue("login"); {
	case d == nil:
		http.Error(w, "there is no such code, or it was used", http.StatusNotFound)
	case r.Method != http.MethodPost:
		showConsent(w, d.client, d.asked)
	case r.PostFormValue("decision") != "allow" || login == "":
		d.decided = "deny"
		http.Error(w, "denied", http.StatusOK)
	default:
		d.login, d.decided = login, "allow"
		for _, scope := range r.PostForm["granted"] {
			if slices.Contains(d.asked, scope) {
				d.granted = append(d.granted, scope)
			}
		}
		http.Error(w, "done: go back to your device", http.StatusOK)
	}
}

// deviceHandler exchanges device codes for tokens.
type deviceHandler struct {
	*oauth2.HandleHelper
	strategy oauth2.CoreStrategy
	store    *store
	options  options
}

// CanSkipClientAuth returns false: a client that has a secret sends it.
func (h *deviceHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest reports whether the request is of this grant.
func (h *deviceHandler) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(deviceGrant)
}

// refusal is an error of RFC 8628 section 3.5.
func refusal(code, description string) error {
	return &fosite.RFC6749Error{ErrorField: code, DescriptionField: description, CodeField: http.StatusBadRequest}
}

// HandleTokenEndpointRequest takes the device code.
func (h *deviceHandler) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	if !h.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	code, now := r.GetRequestForm().Get("device_code"), time.Now()
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	d := h.store.devices[code]
	if d == nil || d.client != r.GetClient().GetID() {
		return fosite.ErrInvalidGrant
	}
	soon := now.Sub(d.polled) < h.options.interval
	d.polled = now
	switch {
	case now.After(d.ends):
		return refusal("expired_token", "The device code has expired.")
	case d.decided == "deny":
		return refusal("access_denied", "The person denied the request.")
	case d.decided == "" && soon:
		return refusal("slow_down", "The device asks too often.")
	case d.decided == "":
		return refusal("authorization_pending", "The person has not decided yet.")
	}
	delete(h.store.devices, code)
	session := &fosite.DefaultSession{Subject: d.login}
	session.SetExpiresAt(fosite.AccessToken, now.UTC().Add(h.options.ttl).Round(time.Second))
	r.SetSession(session)
	r.SetRequestedScopes(d.asked)
	for _, scope := range d.granted {
		r.GrantScope(scope)
	}
	return nil
}

// PopulateTokenEndpointResponse issues the tokens.
func (h *deviceHandler) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester,
	response fosite.AccessResponder) error {
	if !h.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	access, err := h.IssueAccessToken(ctx, h.options.ttl, r, response)
	if err != nil {
		return err
	}
	refresh, signature, err := h.strategy.GenerateRefreshToken(ctx, r)
	if err != nil {
		return err
	}
	response.SetExtra("refresh_token", refresh)
	return h.store.CreateRefreshTokenSession(ctx, signature, access, r.Sanitize(nil))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v)
}
