package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
	"golang.org/x/crypto/bcrypt"
)

// store is what fosite keeps of clients, codes and tokens, in memory. A token's family is the login that it came of,
// which is the ID of the request.
type store struct {
	mu      sync.Mutex
	clients map[string]*fosite.DefaultClient
	codes   map[string]*grant
	pkces   map[string]fosite.Requester
	access  map[string]*grant
	refresh map[string]*grant
	devices map[string]*device // by device code
	secrets []string           // all that was issued
	used    map[string][]string
	counts  counts
}

// counts are how often something happened.
type counts struct {
	TokenRequests int `json:"token_requests"`
	Refreshes     int `json:"refreshes"`   // that gave a new token
	Reuses        int `json:"reuses"`      // of a refresh token that was rotated
	Revocations   int `json:"revocations"` // requests to /revoke
	APIRequests   int `json:"api_requests"`
	APIRefusals   int `json:"api_refusals"` // with 401
}

// grant is a code or a token.
type grant struct {
	fosite.Requester
	used    bool // a code that was exchanged, a refresh token that was rotated
	revoked bool // or expired by an administrator
}

// dead reports whether the grant's own time is over, or was ended.
func (g *grant) dead(kind fosite.TokenType) bool {
	end := g.GetSession().GetExpiresAt(kind)
	return g.used || g.revoked || !end.IsZero() && time.Now().After(end)
}

var (
	_ fosite.Storage                = (*store)(nil)
	_ oauth2.CoreStorage            = (*store)(nil)
	_ oauth2.TokenRevocationStorage = (*store)(nil)
)

// newStore returns a store with the clients of a file.
func newStore(file string) (*store, error) {
	s := &store{clients: map[string]*fosite.DefaultClient{}, codes: map[string]*grant{},
		pkces: map[string]fosite.Requester{}, access: map[string]*grant{}, refresh: map[string]*grant{},
		devices: map[string]*device{}, used: map[string][]string{}}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var clients []struct{ ID, Secret string }
	if err := json.Unmarshal(text, &clients); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, c := range clients {
		client := &fosite.DefaultClient{ID: c.ID, Public: c.Secret == "", ResponseTypes: []string{"code"},
			GrantTypes: []string{"authorization_code", "refresh_token", "client_credentials", deviceGrant}}
		if !client.Public {
			if client.Secret, err = bcrypt.GenerateFromPassword([]byte(c.Secret), bcrypt.MinCost); err != nil {
				return nil, err
			}
			s.secrets = append(s.secrets, c.Secret)
		}
		s.clients[c.ID] = client
	}
	return s, nil
}

// registerLoopback adds a redirect to http://localhost, of any port, to those of a client, as RFC 8252 section 7.3
// wants it of addresses; fosite takes any port of 127.0.0.1 alone.
func (s *store) registerLoopback(client, redirect string) {
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || u.Hostname() != "localhost" || u.Path != "/callback" || u.RawQuery != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[client]
	if c == nil || slices.Contains(c.RedirectURIs, redirect) {
		return
	}
	with := *c // requests that came before hold the other one
	with.RedirectURIs = append(slices.Clone(c.RedirectURIs), redirect)
	s.clients[client] = &with
}

// count changes what is counted.
func (s *store) count(change func(*counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}

// issued records a secret value.
func (s *store) issued(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secret)
}

// GetClient returns a client.
func (s *store) GetClient(_ context.Context, id string) (fosite.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[id]; ok {
		return c, nil
	}
	return nil, fosite.ErrNotFound
}

var errNoAssertions = errors.New("clients have secrets, and no assertions")

// ClientAssertionJWTValid returns an error: clients have no keys.
func (s *store) ClientAssertionJWTValid(context.Context, string) error { return errNoAssertions }

// SetClientAssertionJWT returns an error: clients have no keys.
func (s *store) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return errNoAssertions
}

// CreateAuthorizeCodeSession stores a code.
func (s *store) CreateAuthorizeCodeSession(_ context.Context, code string, r fosite.Requester) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = &grant{Requester: r}
	return nil
}

// GetAuthorizeCodeSession returns the request of a code, with an error too if the code was used.
func (s *store) GetAuthorizeCodeSession(_ context.Context, code string, _ fosite.Session) (fosite.Requester, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch g := s.codes[code]; {
	case g == nil:
		return nil, fosite.ErrNotFound
	case g.used:
		return g.Requester, fosite.ErrInvalidatedAuthorizeCode
	default:
		return g.Requester, nil
	}
}

// InvalidateAuthorizeCodeSession marks a code as used.
func (s *store) InvalidateAuthorizeCodeSession(_ context.Context, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.codes[code]
	if g == nil || g.used {
		return fosite.ErrNotFound
	}
	g.used = true
	return nil
}

// CreatePKCERequestSession stores the challenge of a code.
func (s *store) CreatePKCERequestSession(_ context.Context, code string, r fosite.Requester) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pkces[code] = r
	return nil
}

// GetPKCERequestSession returns the challenge of a code.
func (s *store) GetPKCERequestSession(_ context.Context, code string, _ fosite.Session) (fosite.Requester, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.pkces[code]; ok {
		return r, nil
	}
	return nil, fosite.ErrNotFound
}

// DeletePKCERequestSession removes the challenge of a code.
func (s *store) DeletePKCERequestSession(_ context.Context, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pkces, code)
	return nil
}

// CreateAccessTokenSession stores an access token.
func (s *store) CreateAccessTokenSession(_ context.Context, signature string, r fosite.Requester) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access[signature] = &grant{Requester: r}
	return nil
}

// GetAccessTokenSession returns the request of an access token that is not revoked.
func (s *store) GetAccessTokenSession(_ context.Context, sign string, _ fosite.Session) (fosite.Requester, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.access[sign]; g != nil && !g.revoked {
		return g.Requester, nil
	}
	return nil, fosite.ErrNotFound
}

// DeleteAccessTokenSession removes an access token.
func (s *store) DeleteAccessTokenSession(_ context.Context, signature string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.access, signature)
	return nil
}

// CreateRefreshTokenSession stores a refresh token.
func (s *store) CreateRefreshTokenSession(_ context.Context, signature, _ string, r fosite.Requester) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh[signature] = &grant{Requester: r}
	return nil
}

// GetRefreshTokenSession returns the request of a refresh token, with [fosite.ErrInactiveToken] if it was rotated:
// then fosite revokes its family.
func (s *store) GetRefreshTokenSession(_ context.Context, sign string, _ fosite.Session) (fosite.Requester, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch g := s.refresh[sign]; {
	case g == nil || g.revoked:
		return nil, fosite.ErrNotFound
	case g.used:
		s.counts.Reuses++
		return g.Requester, fosite.ErrInactiveToken
	default:
		return g.Requester, nil
	}
}

// DeleteRefreshTokenSession removes a refresh token.
func (s *store) DeleteRefreshTokenSession(_ context.Context, signature string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, signature)
	return nil
}

// RotateRefreshToken marks a refresh token as used. Where two requests use it at once, the second one revokes the
// family. Access tokens live on until they expire.
func (s *store) RotateRefreshToken(_ context.Context, family, signature string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.refresh[signature]
	if g == nil || g.revoked || g.used {
		s.counts.Reuses++
		s.revoke(func(r *grant) bool { return r.GetID() == family })
		return fosite.ErrInactiveToken
	}
	g.used = true
	s.counts.Refreshes++
	return nil
}

// RevokeRefreshToken revokes the refresh tokens of a family.
func (s *store) RevokeRefreshToken(_ context.Context, family string) error {
	return s.revokeOf(s.refresh, family)
}

// RevokeAccessToken revokes the access tokens of a family.
func (s *store) RevokeAccessToken(_ context.Context, family string) error {
	return s.revokeOf(s.access, family)
}

func (s *store) revokeOf(tokens map[string]*grant, family string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range tokens {
		g.revoked = g.revoked || g.GetID() == family
	}
	return nil
}

// revoke revokes the tokens that are chosen. The caller has the lock.
func (s *store) revoke(chosen func(*grant) bool) {
	for _, tokens := range []map[string]*grant{s.access, s.refresh} {
		for _, g := range tokens {
			g.revoked = g.revoked || chosen(g)
		}
	}
}

// recorder records the secrets that a strategy makes.
type recorder struct {
	oauth2.CoreStrategy
	store *store
}

// GenerateAccessToken makes an access token.
func (r recorder) GenerateAccessToken(ctx context.Context, req fosite.Requester) (token, signature string, err error) {
	token, signature, err = r.CoreStrategy.GenerateAccessToken(ctx, req)
	r.store.issued(token)
	return token, signature, err
}

// GenerateRefreshToken makes a refresh token.
func (r recorder) GenerateRefreshToken(ctx context.Context, req fosite.Requester) (token, signature string, err error) {
	token, signature, err = r.CoreStrategy.GenerateRefreshToken(ctx, req)
	r.store.issued(token)
	return token, signature, err
}

// GenerateAuthorizeCode makes a code.
func (r recorder) GenerateAuthorizeCode(ctx context.Context, req fosite.Requester) (code, signature string, err error) {
	code, signature, err = r.CoreStrategy.GenerateAuthorizeCode(ctx, req)
	r.store.issued(code)
	return code, signature, err
}
