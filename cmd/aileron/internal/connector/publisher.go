package connector

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
)

// publisher is what is known of who published a connector.
type publisher struct {
	own    bool // it is part of this program
	claim  signature.Claim
	status signature.Status
	Err    error // why its signature is refused
}

// Publishers are those of connectors, by the hashes of these.
type Publishers map[string]publisher

// Of returns the publisher of a connector, which is not verified unless it was looked at.
func (p Publishers) Of(c *spec.Connector) publisher {
	if known, ok := p[c.Hash]; ok {
		return known
	}
	return publisher{own: isOfCatalog(c), claim: signature.ClaimOf(c)}
}

// The states of a signature in --json and in the audit log.
const (
	signatureVerified = "verified"
	signatureNewKey   = "new_key" // it is valid, and no key of the publisher is known
	signatureNone     = "unsigned"
	signatureOwn      = "part_of_aileron"
	signatureFailed   = "failed"
)

func (p publisher) state() string {
	switch {
	case p.Err != nil:
		return signatureFailed
	case p.own:
		return signatureOwn
	case p.status.First:
		return signatureNewKey
	case p.status.Signed:
		return signatureVerified
	}
	return signatureNone
}

// revoked returns why the signature is refused, and reports whether that is because its key was removed.
func (p publisher) revoked() (*signature.Error, bool) {
	var refused *signature.Error
	return refused, errors.As(p.Err, &refused) && refused.Reason == signature.ReasonRevoked
}

// Why returns why the signature is refused, for a line that names the connector.
func (p publisher) Why() string {
	var refused *signature.Error
	if errors.As(p.Err, &refused) {
		return refused.Message
	}
	return cli.AsLine(p.Err.Error())
}

// text returns what is known of the publisher in one line.
func (p publisher) text() string {
	authority := signature.AuthorityOf(p.claim.FQN)
	switch p.state() {
	case signatureFailed:
		return "not verified: " + p.Why()
	case signatureOwn:
		return "part of aileron: it comes with this program, unsigned"
	case signatureNewKey:
		return fmt.Sprintf("signed with the key %s, and no key of %s is known yet", p.status.Key.ID(), authority)
	case signatureVerified:
		return fmt.Sprintf("%s: signed with its key %s", authority, p.status.Key.ID())
	}
	return "unsigned: its publisher is not verified"
}

// firstKey returns the key that is trusted if the connector is installed; "" if that trusts none.
func (p publisher) firstKey() string {
	if p.state() != signatureNewKey {
		return ""
	}
	return p.status.Key.String() + " (to be remembered: compare it with the key that the publisher announces)"
}

// SignatureJSON is a publisher in --json.
type SignatureJSON struct {
	Status    string `json:"status"`
	Authority string `json:"authority"`
	KeyID     string `json:"key_id,omitempty"`
	PublicKey string `json:"public_key,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (p publisher) json() *SignatureJSON {
	j := &SignatureJSON{Status: p.state(), Authority: string(signature.AuthorityOf(p.claim.FQN))}
	if p.Err != nil {
		j.Reason, j.Error = failure.ReasonOf(p.Err), cli.AsLine(p.Err.Error())
	} else if p.status.Signed {
		j.KeyID, j.PublicKey = p.status.Key.ID().String(), p.status.Key.String()
	}
	return j
}

// mark adds to what the audit events of an installation have who signed the connector.
func (p publisher) mark(row audit.Row) audit.Row {
	row.Fields["signature"] = p.state()
	if p.status.Signed {
		row.Fields["key_id"] = p.status.Key.ID().String()
	}
	return row
}
