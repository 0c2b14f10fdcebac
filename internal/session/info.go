package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// ID returns the session's id, a ULID.
func (s *Session) ID() string { return s.id }

// Token returns the secret that authorises clients of a listener that proves
// nothing. It is for the session's own command only.
func (s *Session) Token() string { return s.token }

// Dir returns the session's directory, which Close removes.
func (s *Session) Dir() string { return s.dir }

// RootPEM returns the certificate of the session's CA.
func (s *Session) RootPEM() []byte { return s.ca.RootPEM() }

// Connectors returns the connectors of the last load. The list is replaced and
// never changed.
func (s *Session) Connectors() []*spec.Connector { return s.loader.installed() }

// Placeholders returns the variables, as NAME=VALUE, with which connectors
// stand for credentials that the command must not have.
func (s *Session) Placeholders() []string {
	var env []string
	for _, c := range s.Connectors() {
		for _, p := range c.Placeholders {
			env = append(env, p.Env+"="+p.Value)
		}
	}
	return env
}

// HoldsSecret returns the name of a binding whose secret is in a text, in any of
// the forms in which responses are searched for it; "" if there is none. The
// bindings of a vault that this process has not unlocked cannot be compared.
func (s *Session) HoldsSecret(text string) (binding string, err error) {
	all, err := s.vault.Bindings()
	if errors.Is(err, vault.ErrNotInitialised) || !s.vault.Unlocked() {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the bindings: %w", err)
	}
	for _, b := range all {
		cred, err := s.vault.Credential(b.Name)
		if errors.Is(err, vault.ErrNotBound) {
			continue // revoked just now
		}
		if err != nil {
			return "", fmt.Errorf("open the credential %s: %w", b.Name, err)
		}
		set := scrub.NewSet([]scrub.Credential{{Secret: []byte(cred.Secret.Reveal()), Username: cred.Username}})
		if _, n := set.Text(text); n > 0 {
			return b.Name, nil
		}
	}
	return "", nil
}

// Redacted returns a reader of src in which every secret that the session has held so
// far is overwritten, as in responses.
func (s *Session) Redacted(src io.ReadCloser) io.ReadCloser {
	r := s.loader.redacts.Load().Reader(src)
	r.Follow(s.loader.redacts.Load)
	return r
}

// RecordDisabled records sandbox.proxy.disabled: no sandbox is mediated, and
// why. If the log cannot be written now, it gets the event later, as
// session.started or the session's end waits for it.
func (s *Session) RecordDisabled(ctx context.Context, reason, cause string) {
	row := s.row(audit.EventSandboxDisabled, map[string]any{"cause": cause, "agent": s.opts.Agent, "mode": s.opts.Mode})
	row.Decision, row.Reason = audit.DecisionDisabled, reason
	if err := s.audit.AppendSoon(ctx, row); err != nil {
		s.opts.Log.Warn("an audit row could not be written", "event", audit.EventSandboxDisabled, "error", err)
	}
}

// RecordPort records sandbox.port.connected: a client of this host is about to be
// connected with a port of the sandbox. It must not be if that fails.
func (s *Session) RecordPort(ctx context.Context, hostPort, port uint16, client string) error {
	_, err := s.audit.Append(ctx, s.row(audit.EventSandboxPort,
		map[string]any{"host_port": int(hostPort), "port": int(port), "client": client}))
	return err
}

// row returns a row of the session.
func (s *Session) row(event audit.Event, fields map[string]any) audit.Row {
	return audit.Row{Event: event, SessionID: s.id, Source: audit.SourceLauncher, Fields: fields}
}
