package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// bind returns the credential of a binding, and keeps it valid if it comes from a login. What renews it is redacted
// too: it leaves for the authorization server alone, but a service may show it.
func (l *loader) bind(b vault.Binding, cred vault.Credential) proxy.Bound {
	bound := proxy.Bound{Binding: b.Name, Credential: cred, ID: b.Login}
	if b.Login == "" {
		bound.ID, _ = l.vault().Digest(b.Name) // an error: it is revoked just now, and the next load has it
	}
	if c, ok := command.Of(cred); ok {
		return l.bindCommand(b, bound, c)
	}
	g, ok, err := oauth.Of(cred)
	if !ok || err != nil {
		return bound // used as it is
	}
	if g.Secret != "" {
		l.redact(g.Secret, "")
	}
	l.redactLatest(g.ID, "", g.Token, g.Refresh)
	source := l.logins[g.ID]
	if source == nil {
		if l.logins == nil {
			l.logins = map[string]*oauth.Source{}
		}
		source = oauth.NewSource(b.Name, g, oauth.SourceOptions{
			Vault: l.s.vault, Transport: l.s.asker, Record: l.s.recordRenewal, Warn: l.s.warnLogin,
			Announce: func() { l.reload(context.Background()) },
		})
		l.logins[g.ID] = source
	}
	l.renewed = append(l.renewed, func() { source.Use(g) })
	bound.Login = source
	return bound
}

// bindCommand is bind for a credential that a program prints. It has no secret until the program has.
func (l *loader) bindCommand(b vault.Binding, bound proxy.Bound, c command.Command) proxy.Bound {
	id := b.Name + " " + bound.ID // another command is another source
	source := l.commands[id]
	if source == nil {
		if l.commands == nil {
			l.commands = map[string]*command.Source{}
		}
		source = command.NewSource(id, c, command.SourceOptions{
			Start: l.s.opts.Start, Announce: func() { l.reload(context.Background()) },
			Record: func() (func(error), error) { return l.s.recordRenewal(b) },
			Warn: func(err error) {
				l.s.opts.Log.Warn("a program that prints a credential failed; requests that need it are refused when it has "+
					"expired", "binding", b.Name, "error", err)
			},
		})
		l.commands[id] = source
	}
	if l.began {
		source.Begin()
	}
	bound.Credential.Secret, bound.Login = source.Secret(), source
	return bound
}

// maxTokens bounds the tokens of one login that stay redacted, in bytes. Each renewal builds the search for all of them
// anew, which takes some 0.15 s of a core at this bound. Redacted are then those of the last 13 renewals where a token
// has 1200 bytes, and of hundreds where it is short.
const maxTokens = 16 << 10

// redactLatest adds secrets, of which one takes the place of another, to what stays redacted: those of a login, or what
// a file or a program has. The oldest of the same id make room for them.
func (l *loader) redactLatest(id, username string, secrets ...string) {
	if l.tokens == nil {
		l.tokens = map[string][]string{}
	}
	kept, latest := l.tokens[id], 0
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		latest++
		l.redact(secret, username)
		// The last ones are those in force: a refresh token that stays as it is does not grow old.
		kept = append(slices.DeleteFunc(kept, func(k string) bool { return k == secret }), secret)
	}
	size := 0
	for _, secret := range kept {
		size += len(secret)
	}
	for ; size > maxTokens && len(kept) > latest; kept = kept[1:] {
		oldest := kept[0]
		size -= len(oldest)
		if l.keepsElsewhere(id, oldest) {
			continue
		}
		maps.DeleteFunc(l.secrets, func(_ string, c scrub.Credential) bool { return string(c.Secret) == oldest })
	}
	l.tokens[id] = kept
}

// keepsElsewhere reports whether a secret is among the latest of another id.
func (l *loader) keepsElsewhere(id, secret string) bool {
	for other, kept := range l.tokens {
		if other != id && slices.Contains(kept, secret) {
			return true
		}
	}
	return false
}

// setGrants makes g what the plane may do, and only then has its logins say that their tokens are fresh.
func (l *loader) setGrants(g *proxy.Grants) {
	l.s.plane.SetGrants(g)
	for _, use := range l.renewed {
		use()
	}
	select {
	case l.changed <- struct{}{}:
	default: // one that is yet to be noticed stands for this one too
	}
}

// endLogins waits for renewals under way, whose rows precede session.ended, and closes the connections to authorization
// servers.
func (s *Session) endLogins() {
	s.loader.mu.Lock()
	sources := slices.Collect(maps.Values(s.loader.logins))
	commands := slices.Collect(maps.Values(s.loader.commands))
	s.loader.mu.Unlock()
	for _, source := range commands {
		source.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), loginsWait)
	defer cancel()
	for _, source := range sources { // which reload
		source.Close(ctx)
	}
	if s.askOnce.Do(func() { s.askErr = errors.New("the session ends") }); s.asks != nil {
		s.asks.Close()
	}
}

// loginsWait bounds the wait of a session's end for renewals.
const loginsWait = 35 * time.Second // as long as a request for a token takes at most, and a little more

// asker returns what asks authorization servers: the dialler of the plane, with connections of its own.
func (s *Session) asker() (http.RoundTripper, error) {
	s.askOnce.Do(func() { s.asks, s.askErr = upstream.New(s.opts.Upstream) })
	if s.askErr != nil {
		return nil, fmt.Errorf("reach authorization servers: %w", s.askErr)
	}
	return s.asks.Transport(), nil
}

// recordRenewal commits the intent of a renewal, and returns what records its outcome.
func (s *Session) recordRenewal(b vault.Binding) (func(error), error) {
	id := audit.NewID()
	started := s.renewalRow(audit.EventBindingRefreshStarted, b, id)
	if _, err := s.audit.Append(context.Background(), started); err != nil {
		return nil, fmt.Errorf("record it: %w", err)
	}
	return func(err error) {
		if err != nil {
			s.renewalFailed(s.renewalRow(audit.EventBindingRefreshFailed, b, id), err)
			return
		}
		s.noteRenewal(s.renewalRow(audit.EventBindingRefreshed, b, id))
	}, nil
}

// renewalRow returns a row of the renewal with the id.
func (s *Session) renewalRow(event audit.Event, b vault.Binding, id string) audit.Row {
	r := s.row(event, map[string]any{"request_id": id})
	r.ConnectorFQN, r.Binding = b.Connector, b.Name
	return r
}

func (s *Session) renewalFailed(r audit.Row, err error) {
	r.Reason, r.Fields["error"] = "refresh_failed", termsafe.Line(err.Error())
	s.noteRenewal(r)
}

// noteRenewal records the outcome of a renewal. The log holds it while it cannot be written.
func (s *Session) noteRenewal(r audit.Row) {
	_ = tallied{s.audit, &s.tally}.AppendSoon(context.Background(), r)
}

// warnLogin warns of a login whose token is not renewed. That it has ended is in the log too, if nothing was asked.
func (s *Session) warnLogin(b vault.Binding, err error, asked bool) {
	s.opts.Log.Warn("a token could not be renewed; requests that need it are refused when it has expired",
		"binding", b.Name, "error", err, "to log in again", "aileron binding rebind "+b.Name)
	if !asked && errors.Is(err, vault.ErrLoginNeeded) {
		s.renewalFailed(s.renewalRow(audit.EventBindingRefreshFailed, b, audit.NewID()), err)
	}
}
