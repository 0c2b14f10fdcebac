package connectors

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
)

// Publisher is what is known of who published a connector.
type Publisher struct {
	Own    bool // it is part of this program
	Claim  signature.Claim
	Status signature.Status
	Err    error // why its signature is refused
}

// Publishers are those of connectors, by the hashes of these.
type Publishers map[string]Publisher

// Of returns the publisher of a connector, which is not verified unless it was looked at.
func (p Publishers) Of(c *spec.Connector) Publisher {
	if known, ok := p[c.Hash]; ok {
		return known
	}
	return Publisher{Own: IsOfCatalog(c), Claim: signature.ClaimOf(c)}
}

// The states of a signature in --json and in the audit log.
const (
	signatureVerified = "verified"
	signatureNewKey   = "new_key"  // it is valid, and no key of the publisher is known
	signatureNextKey  = "next_key" // it is valid, and a key of the publisher vouches for its key
	signatureNone     = "unsigned"
	signatureOwn      = "part_of_aileron"
	signatureFailed   = "failed"
)

func (p Publisher) State() string {
	switch {
	case p.Err != nil:
		return signatureFailed
	case p.Own:
		return signatureOwn
	case p.Status.First:
		return signatureNewKey
	case len(p.Status.Replaces) > 0:
		return signatureNextKey
	case p.Status.Signed:
		return signatureVerified
	}
	return signatureNone
}

// Revoked returns why the signature is refused, and reports whether that is because its key was removed.
func (p Publisher) Revoked() (*signature.Error, bool) {
	var refused *signature.Error
	return refused, errors.As(p.Err, &refused) && refused.Reason == signature.ReasonRevoked
}

// Why returns why the signature is refused, for a line that names the connector.
func (p Publisher) Why() string {
	var refused *signature.Error
	if errors.As(p.Err, &refused) {
		return refused.Message
	}
	return failure.AsLine(p.Err.Error())
}

// Text returns what is known of the publisher in one line.
func (p Publisher) Text() string {
	authority := signature.AuthorityOf(p.Claim.FQN)
	switch p.State() {
	case signatureFailed:
		return "not verified: " + p.Why()
	case signatureOwn:
		return "part of aileron: it comes with this program, unsigned"
	case signatureNewKey:
		return fmt.Sprintf("signed with the key %s, and no key of %s is known yet", p.Status.Key.ID(), authority)
	case signatureNextKey:
		return fmt.Sprintf("%s: signed with its new key %s, for which its key %s vouches; it replaces that key", authority,
			p.Status.Key.ID(), p.Status.Replaces[0].ID())
	case signatureVerified:
		if p.Status.Retired {
			return fmt.Sprintf("%s: signed with its key %s, which it has replaced since", authority, p.Status.Key.ID())
		}
		return fmt.Sprintf("%s: signed with its key %s", authority, p.Status.Key.ID())
	}
	return "unsigned: its publisher is not verified"
}

// newKey returns the key that is trusted if the connector is installed; "" if that trusts none. It is whole: who makes
// a key chooses its id.
func (p Publisher) newKey() string {
	switch p.State() {
	case signatureNewKey:
		return p.Status.Key.String() + " (to be remembered: compare it with the key that the publisher announces)"
	case signatureNextKey:
		return p.Status.Key.String() + " (to be remembered in place of the old one: compare it with the key that the " +
			"publisher announces)"
	}
	return ""
}

// SignatureJSON is a publisher in --json.
type SignatureJSON struct {
	Status    string `json:"status"`
	Authority string `json:"authority"`
	KeyID     string `json:"key_id,omitempty"`
	PublicKey string `json:"public_key,omitempty"`
	VouchedBy string `json:"vouched_by,omitempty"` // of next_key: the id of the publisher's key that it replaces
	Replaced  bool   `json:"replaced,omitempty"`   // the publisher has replaced the key since
	Reason    string `json:"reason,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (p Publisher) Json() *SignatureJSON {
	j := &SignatureJSON{Status: p.State(), Authority: string(signature.AuthorityOf(p.Claim.FQN))}
	if p.Err != nil {
		j.Reason, j.Error = failure.ReasonOf(p.Err), failure.AsLine(p.Err.Error())
	} else if p.Status.Signed {
		j.KeyID, j.PublicKey, j.Replaced = p.Status.Key.ID().String(), p.Status.Key.String(), p.Status.Retired
		if len(p.Status.Replaces) > 0 {
			j.VouchedBy = p.Status.Replaces[0].ID().String()
		}
	}
	return j
}

// Mark adds to what the audit events of an installation have who signed the connector.
func (p Publisher) Mark(row audit.Row) audit.Row {
	row.Fields["signature"] = p.State()
	if p.Status.Signed {
		row.Fields["key_id"] = p.Status.Key.ID().String()
	}
	return row
}
