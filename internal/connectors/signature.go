package connectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// CheckSignature verifies the signature of a connector that is not installed; sig is nil if it has none. A signature
// grants nothing, so what is valid is asked about as what is not signed.
func CheckSignature(d *home.Dir, claim signature.Claim, sig []byte) Publisher {
	p, known := checkSignature(d, claim, sig)
	if p.Err == nil {
		p.Err = signature.Hint(p.Status.Refusal(known, claim))
	}
	return p
}

// checkSignature verifies the signature of a connector, and returns what is known of its publisher's keys. It accepts
// what a key signed that was replaced since.
func checkSignature(d *home.Dir, claim signature.Claim, sig []byte) (p Publisher, known signature.Trust) {
	p = Publisher{Claim: claim}
	if IsCatalogHash(claim.FQN, claim.Hash) {
		p.Own = true // its bytes came with this program, whatever key signs them
		return p, known
	}
	keys, err := d.PublisherKeys()
	if err != nil {
		p.Err = err
		return p, known
	}
	if known, err = keys.Of(signature.AuthorityOf(claim.FQN)); err != nil {
		p.Err = KeysHint(err)
		return p, known
	}
	if p.Status, err = signature.Check(known, claim, sig); err != nil {
		p.Err = signature.Hint(err)
	}
	return p, known
}

// CheckInstalled verifies the signature that the store has of a connector.
func CheckInstalled(d *home.Dir, s *store.Store, claim signature.Claim) Publisher {
	sig, err := s.Signature(claim.Hash)
	if err != nil {
		return Publisher{Claim: claim, Err: fmt.Errorf("verify %s@%s: %w", claim.FQN, claim.Version, err)}
	}
	p, _ := checkSignature(d, claim, sig)
	return p
}

// WarnOfRemovedKeys prints which connectors of a session are signed with a key that was removed: that refuses what is
// installed later, and stops nothing that is installed. Where no key was removed, it reads no connector.
func WarnOfRemovedKeys(d *home.Dir, used []spec.FQN, versions map[spec.FQN]string) {
	keys, err := d.PublisherKeys()
	if err != nil {
		return
	}
	known, err := keys.List() // its error is that of connector verify
	if err != nil || !slices.ContainsFunc(known, func(t signature.Trust) bool { return len(t.Revoked) > 0 }) {
		return
	}
	s, err := d.OpenStore()
	if err != nil {
		return
	}
	all, _ := s.All() // the session's loader has its errors
	for _, c := range store.InForce(all, versions) {
		if used != nil && !slices.Contains(used, c.FQN) {
			continue
		}
		if refused, ok := CheckInstalled(d, s, signature.ClaimOf(c)).Revoked(); ok {
			d.Warnf("aileron: warning: %s@%s is still allowed, but %s; remove it with: aileron connector remove %s@%s",
				c.FQN, c.Version, refused.Message, c.FQN, c.Version)
		}
	}
}

// WarnOfRemovedKey prints which installed connectors are signed with a key that was removed, and which keys are known
// because it vouched for them: if it was in other hands, so may they be.
func WarnOfRemovedKey(d *home.Dir, of signature.Authority, id signature.KeyID) {
	s, entries, err := d.Installed()
	if err != nil {
		d.Warnf("aileron: warning: which connectors it has signed is not known: %v", err)
		return
	}
	by := CheckEntries(d, s, entries)
	for _, e := range entries {
		if refused, ok := by[e.Hash].Revoked(); ok && refused.KeyID == id {
			d.Warnf("aileron: %s is signed with it, stays installed and is still allowed; remove it with: "+
				"aileron connector remove %s", e, e)
		}
	}
	keys, err := d.PublisherKeys()
	if err != nil {
		return
	}
	known, err := keys.Of(of)
	if err != nil {
		return // connector verify has it
	}
	for _, k := range slices.Concat(known.Keys, known.Retired) {
		if k.VouchedBy == id {
			d.Warnf("aileron: warning: the key %s is accepted because the removed key vouched for it: if that key was in other "+
				"hands, remove this one too, unless the publisher has announced it: aileron connector keys remove %s %[1]s",
				k.Key.ID(), of)
		}
	}
}

// admit verifies the signature of a connector that may be installed. A refusal is recorded. What a key has signed that
// was replaced since is refused, unless isKnown reports that a person named these very bytes, or has them: a holder of
// the old key could sign other ones.
func admit(ctx context.Context, d *home.Dir, candidate *store.Candidate, isKnown bool) (Publisher, error) {
	p, known := checkSignature(d, signature.ClaimOf(candidate.Connector), candidate.Signature)
	if p.Err == nil && !isKnown {
		p.Err = signature.Hint(p.Status.Refusal(known, p.Claim))
	}
	if p.Err != nil {
		RecordRefusals(ctx, d, []Publisher{p})
	}
	return p, p.Err
}

// admitTogether verifies connectors that are installed by one command against the keys that it makes known: a publisher
// whose first key one of them brings has signed the others with it too. It is called before anything is asked, so that
// a refusal leaves no key behind.
func admitTogether(ctx context.Context, d *home.Dir, sources []store.Source, by Publishers) error {
	for _, src := range sources {
		first := by[src.Hash]
		if !first.Status.First {
			continue
		}
		known := signature.Trust{Authority: signature.AuthorityOf(first.Claim.FQN),
			Keys: []signature.Known{{Key: first.Status.Key}}}
		for _, other := range sources {
			p, read := by[other.Hash]
			if !read || p.Own || signature.AuthorityOf(p.Claim.FQN) != known.Authority {
				continue
			}
			if _, err := signature.Check(known, p.Claim, other.Signature); err != nil {
				p.Err = signature.Hint(err)
				RecordRefusals(ctx, d, []Publisher{p})
				return p.Err
			}
		}
	}
	return nil
}

// rememberKey makes the first key of a publisher the one with which its connectors must be signed.
func rememberKey(ctx context.Context, d *home.Dir, batch *changes.Batch, p Publisher) error {
	keys, err := d.PublisherKeys()
	if err != nil {
		return err
	}
	authority := signature.AuthorityOf(p.Claim.FQN)
	known, err := keys.Of(authority)
	if err != nil {
		return KeysHint(err)
	}
	for _, k := range known.Keys {
		if k.Key.Equal(p.Status.Key) {
			return nil // another installation was faster
		}
	}
	about := audit.Row{ConnectorFQN: string(p.Claim.FQN), ConnectorVersion: p.Claim.Version,
		Fields: map[string]any{"authority": string(authority), "key_id": p.Status.Key.ID().String()}}
	err = batch.Enact(ctx, changes.Change{What: audit.ChangePublisherKeyAdd, About: about}, func() error {
		return keys.Remember(ctx, p.Claim, p.Status.Key)
	})
	if err != nil {
		return signature.Hint(KeysHint(err))
	}
	d.Warnf("aileron: trusted on first use: from now on connectors of %s must be signed with the key %s",
		authority, p.Status.Key.ID())
	return nil
}

// rotateKey makes the key of a connector the one with which its publisher's connectors must be signed, in place of
// those that vouch for it.
func rotateKey(ctx context.Context, d *home.Dir, batch *changes.Batch, p Publisher, sig []byte) error {
	keys, err := d.PublisherKeys()
	if err != nil {
		return err
	}
	authority := signature.AuthorityOf(p.Claim.FQN)
	known, err := keys.Of(authority)
	if err != nil {
		return KeysHint(err)
	}
	// What this or another installation has made known meanwhile may be another key than the one that was asked about.
	now, err := signature.Check(known, p.Claim, sig)
	if err != nil {
		return signature.Hint(err)
	}
	if len(now.Replaces) == 0 {
		return nil // another installation was faster
	}
	old := now.Replaces[0]
	about := audit.Row{ConnectorFQN: string(p.Claim.FQN), ConnectorVersion: p.Claim.Version,
		Fields: map[string]any{"authority": string(authority), "key_id": p.Status.Key.ID().String(),
			"vouched_by": old.ID().String()}}
	err = batch.Enact(ctx, changes.Change{What: audit.ChangePublisherKeyAdd, About: about}, func() error {
		_, err := keys.Rotate(ctx, p.Claim, sig)
		return err
	})
	if err != nil {
		return signature.Hint(KeysHint(err))
	}
	d.Warnf("aileron: the key of %s was replaced: from now on its connectors must be signed with the key %s, for which "+
		"its key %s vouches", authority, p.Status.Key.ID(), old.ID())
	return nil
}

// RecordRefusals records signatures that were refused. A refusal stands even if it cannot be recorded.
func RecordRefusals(ctx context.Context, d *home.Dir, all []Publisher) {
	var rows []audit.Row
	for _, p := range all {
		var refused *signature.Error
		if !errors.As(p.Err, &refused) {
			continue
		}
		row := AboutConnector(string(p.Claim.FQN), p.Claim.Version, p.Claim.Hash)
		row.Event, row.Reason, row.Source = audit.EventConnectorVerifyFailed, string(refused.Reason), audit.SourceCLI
		row.Fields["error"] = refused.Error()
		if refused.KeyID != 0 {
			row.Fields["key_id"] = refused.KeyID.String()
		}
		rows = append(rows, row)
	}
	if err := appendRows(ctx, d, rows); err != nil {
		d.Warnf("aileron: warning: the refusal could not be recorded: %v", err)
	}
}

// appendRows adds rows to the audit log.
func appendRows(ctx context.Context, d *home.Dir, rows []audit.Row) error {
	if len(rows) == 0 {
		return nil
	}
	dir, err := d.Home()
	if err != nil {
		return err
	}
	log, err := d.OpenLog(dir)
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

// AboutConnector returns what the audit events of every change to a connector have.
func AboutConnector(fqn, version, hash string) audit.Row {
	return audit.Row{ConnectorFQN: fqn, ConnectorVersion: version, Fields: map[string]any{"hash": hash}}
}

// KeysHint returns err with a hint if it is about files of keys.
func KeysHint(err error) error {
	var unreadable *signature.KeysError
	if errors.As(err, &unreadable) {
		return hint.New(err, "correct the file or its rights; if you remove it, the publisher's next key is trusted "+
			"on its first use")
	}
	return err
}

// ChangeKeys changes the publishers' keys, and records that. id is 0 if it is about all keys of the authority.
func ChangeKeys(ctx context.Context, d *home.Dir, r changes.Recorder, what audit.Change, of signature.Authority,
	id signature.KeyID, act func(context.Context, *signature.Keys) error,
) error {
	keys, err := d.PublisherKeys()
	if err != nil {
		return err
	}
	about := audit.Row{Fields: map[string]any{"authority": string(of)}}
	if id != 0 {
		about.Fields["key_id"] = id.String()
	}
	err = r.Enact(ctx, changes.Change{What: what, About: about}, func() error { return act(ctx, keys) })
	if errors.Is(err, signature.ErrNoKey) {
		return hint.New(fmt.Errorf("change the keys of %s: %w", of, err), "see those that are known with: "+
			"aileron connector keys list")
	}
	return KeysHint(err)
}
