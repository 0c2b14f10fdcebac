package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// checkSignature verifies the signature of a connector; sig is nil if it has none. A signature grants nothing, so what
// is valid is asked about as what is not signed.
func checkSignature(a *cli.App, claim signature.Claim, sig []byte) publisher {
	p := publisher{claim: claim}
	if isCatalogHash(claim.FQN, claim.Hash) {
		p.own = true // its bytes came with this program, whatever key signs them
		return p
	}
	keys, err := a.PublisherKeys()
	if err != nil {
		p.Err = err
		return p
	}
	known, err := keys.Of(signature.AuthorityOf(claim.FQN))
	if err != nil {
		p.Err = keysHint(err)
		return p
	}
	if p.status, err = signature.Check(known, claim, sig); err != nil {
		p.Err = signature.Hint(err)
	}
	return p
}

// CheckInstalled verifies the signature that the store has of a connector.
func CheckInstalled(a *cli.App, s *store.Store, claim signature.Claim) publisher {
	sig, err := s.Signature(claim.Hash)
	if err != nil {
		return publisher{claim: claim, Err: fmt.Errorf("verify %s@%s: %w", claim.FQN, claim.Version, err)}
	}
	return checkSignature(a, claim, sig)
}

// WarnOfRemovedKeys prints which connectors of a session are signed with a key that was removed: that refuses what is
// installed later, and stops nothing that is installed. Where no key was removed, it reads no connector.
func WarnOfRemovedKeys(a *cli.App, used []spec.FQN, versions map[spec.FQN]string) {
	keys, err := a.PublisherKeys()
	if err != nil {
		return
	}
	known, err := keys.List() // its error is that of connector verify
	if err != nil || !slices.ContainsFunc(known, func(t signature.Trust) bool { return len(t.Revoked) > 0 }) {
		return
	}
	s, err := a.OpenStore()
	if err != nil {
		return
	}
	all, _ := s.All() // the session's loader has its errors
	for _, c := range store.InForce(all, versions) {
		if used != nil && !slices.Contains(used, c.FQN) {
			continue
		}
		if refused, ok := CheckInstalled(a, s, signature.ClaimOf(c)).revoked(); ok {
			a.Infof("aileron: warning: %s@%s is still allowed, but %s; remove it with: aileron connector remove %s@%s",
				c.FQN, c.Version, refused.Message, c.FQN, c.Version)
		}
	}
}

// admit verifies the signature of a connector that may be installed. A refusal is recorded.
func admit(ctx context.Context, a *cli.App, candidate *store.Candidate) (publisher, error) {
	p := checkSignature(a, signature.ClaimOf(candidate.Connector), candidate.Signature)
	if p.Err != nil {
		recordRefusals(ctx, a, []publisher{p})
	}
	return p, p.Err
}

// admitTogether verifies connectors that are installed by one command against the keys that it makes known: a publisher
// whose first key one of them brings has signed the others with it too. It is called before anything is asked, so that
// a refusal leaves no key behind.
func admitTogether(ctx context.Context, a *cli.App, sources []store.Source, by Publishers) error {
	for _, src := range sources {
		first := by[src.Hash]
		if !first.status.First {
			continue
		}
		known := signature.Trust{Authority: signature.AuthorityOf(first.claim.FQN),
			Keys: []signature.Known{{Key: first.status.Key}}}
		for _, other := range sources {
			p, read := by[other.Hash]
			if !read || p.own || signature.AuthorityOf(p.claim.FQN) != known.Authority {
				return p.Err
			}
			if _, err := signature.Check(known, p.claim, other.Signature); err != nil {
				p.Err = signature.Hint(err)
				recordRefusals(ctx, a, []publisher{p})
				return p.Err
			}
		}
	}
	return nil
}

// rememberKey makes the first key of a publisher the one with which its connectors must be signed.
func rememberKey(ctx context.Context, a *cli.App, batch *changes.Batch, p publisher) error {
	keys, err := a.PublisherKeys()
	if err != nil {
		return err
	}
	authority := signature.AuthorityOf(p.claim.FQN)
	known, err := keys.Of(authority)
	if err != nil {
		return keysHint(err)
	}
	for _, k := range known.Keys {
		if k.Key.Equal(p.status.Key) {
			return nil // another installation was faster
		}
	}
	about := audit.Row{ConnectorFQN: string(p.claim.FQN), ConnectorVersion: p.claim.Version,
		Fields: map[string]any{"authority": string(authority), "key_id": p.status.Key.ID().String()}}
	err = batch.Enact(ctx, changes.Change{What: audit.ChangePublisherKeyAdd, About: about}, func() error {
		return keys.Remember(ctx, p.claim, p.status.Key)
	})
	if err != nil {
		return signature.Hint(keysHint(err))
	}
	a.Infof("aileron: trusted on first use: from now on connectors of %s must be signed with the key %s",
		authority, p.status.Key.ID())
	return nil
}

// recordRefusals records signatures that were refused. A refusal stands even if it cannot be recorded.
func recordRefusals(ctx context.Context, a *cli.App, all []publisher) {
	var rows []audit.Row
	for _, p := range all {
		var refused *signature.Error
		if !errors.As(p.Err, &refused) {
			continue
		}
		row := AboutConnector(string(p.claim.FQN), p.claim.Version, p.claim.Hash)
		row.Event, row.Reason, row.Source = audit.EventConnectorVerifyFailed, string(refused.Reason), audit.SourceCLI
		row.Fields["error"] = refused.Error()
		if refused.KeyID != 0 {
			row.Fields["key_id"] = refused.KeyID.String()
		}
		rows = append(rows, row)
	}
	if err := appendRows(ctx, a, rows); err != nil {
		a.Infof("aileron: warning: the refusal could not be recorded: %v", err)
	}
}

// appendRows adds rows to the audit log.
func appendRows(ctx context.Context, a *cli.App, rows []audit.Row) error {
	if len(rows) == 0 {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	log, err := a.OpenLog(home)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, err = log.Append(context.WithoutCancel(ctx), row); err != nil {
			break
		}
	}
	return errors.Join(err, log.Close())
}

// refusedSource adds a hint to the error of a source whose signature cannot be read.
func refusedSource(src string, err error) error {
	if errors.As(err, new(*store.SignatureError)) {
		return hint.New(fmt.Errorf("read the connector %s: %w", src, err),
			"nothing was installed; get the connector from its publisher again")
	}
	return err
}
