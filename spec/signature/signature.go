// Package signature signs and verifies connectors, and keeps the keys of their
// publishers.
//
// A package of a connector may hold signature.sig, in the format of minisign.
// [SecretKey.Sign] makes one and [Check] verifies it. It signs the content hash of the
// connector, as its text of 71 bytes, "sha256:" and 64 hexadecimal digits without a
// line end; the trusted comment is FQN@VERSION. So a publisher can verify it by hand:
//
//	printf %s "sha256:…" >hash && minisign -V -p publisher.pub -m hash -x signature.sig
//
// Both forms of minisign are accepted, prehashed and legacy. A signature does not hold
// the key that made it, and [SecretKey.Sign] adds that as the untrusted comment, "public
// key RW…". It is trusted once, for the first signature of an authority: [Keys] then
// remembers it, and no other key can sign for that authority until a person adds one.
//
// A signature proves who published a connector. It grants nothing: what a connector may
// do is decided by the person who installs it.
//
// Open this file first: Check, and the reasons of a refusal. parse.go reads
// signature.sig, key.go keys; keys.go decides which keys are known, and keysfile.go
// keeps them.
package signature

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// Claim is what a signature vouches for: that a connector of this name and version has
// this content.
type Claim struct {
	FQN     spec.FQN
	Version string
	Hash    string // "sha256:…"
}

// ClaimOf returns the claim of a connector that was read.
func ClaimOf(c *spec.Connector) Claim { return Claim{FQN: c.FQN, Version: c.Version, Hash: c.Hash} }

// message returns the bytes that are signed.
func (c Claim) message() []byte { return []byte(c.Hash) }

// comment returns the trusted comment.
func (c Claim) comment() string { return string(c.FQN) + "@" + c.Version }

// Status is what is known of the publisher of a connector.
type Status struct {
	Signed bool
	First  bool      // no key of the authority was known: [Keys.Remember] makes this one known
	Key    PublicKey // of the signature
}

// Check verifies the signature of a connector against what is known of the keys of its
// authority. sig is nil if there is none: then the status is the zero value, unless the
// authority signs its connectors. A refusal is an [*Error].
func Check(known Trust, claim Claim, sig []byte) (Status, error) {
	fail := func(reason Reason, format string, args ...any) (Status, error) {
		return Status{}, &Error{Claim: claim, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	authority := AuthorityOf(claim.FQN)
	switch {
	case sig == nil && known.Signs():
		return fail(ReasonMissing, "it has no signature, and %s signs its connectors (%s)", authority, known.ids())
	case sig == nil:
		return Status{}, nil
	case claim.FQN.IsLocal():
		return fail(ReasonUnexpected, "it has a signature, and connectors of this machine have none")
	}
	s, err := parse(sig)
	if err != nil {
		err.Claim = claim
		return Status{}, err
	}
	key, first, err := s.choose(known)
	if err == nil {
		err = s.verify(key, claim)
	}
	if err != nil {
		err.Claim = claim
		return Status{}, err
	}
	return Status{Signed: true, First: first, Key: key}, nil
}

// choose returns the key that must have made the signature, and whether it is the first
// of its authority.
func (s signed) choose(known Trust) (key PublicKey, first bool, err *Error) {
	fail := func(reason Reason, format string, args ...any) (PublicKey, bool, *Error) {
		return PublicKey{}, false, &Error{Reason: reason, KeyID: s.keyID(), Message: fmt.Sprintf(format, args...)}
	}
	offered, offers := s.offered()
	for _, k := range known.Revoked {
		if k.Key.ID() == s.keyID() || offers && k.Key.sameKey(offered) {
			return fail(ReasonRevoked, "it is signed with the key %s, which was removed from the keys of %s",
				s.keyID(), known.Authority)
		}
	}
	for _, k := range known.Keys {
		switch {
		case k.Key.ID() != s.keyID():
		case offers && !k.Key.Equal(offered):
			return fail(ReasonKeyMismatch, "it is signed with another key that has the id %s of the key of %s",
				s.keyID(), known.Authority)
		default:
			return k.Key, false, nil
		}
	}
	switch {
	case len(known.Keys) > 0:
		return fail(ReasonKeyChanged, "it is signed with the key %s, and the connectors of %s are signed with %s",
			s.keyID(), known.Authority, known.ids())
	case !offers:
		return fail(ReasonKeyUnknown, "it is signed with the key %s, and no key of %s is known", s.keyID(),
			known.Authority)
	case offered.ID() != s.keyID():
		return fail(ReasonKeyMismatch, "it is signed with the key %s, and comes with the key %s", s.keyID(), offered.ID())
	}
	return offered, true, nil
}

// verify returns why the signature by key is not one of the claim.
func (s signed) verify(key PublicKey, claim Claim) *Error {
	fail := func(reason Reason, format string, args ...any) *Error {
		return &Error{Reason: reason, KeyID: s.keyID(), Message: fmt.Sprintf(format, args...)}
	}
	text, err := s.MarshalText() // the bytes that are verified are those that were parsed
	if err != nil {
		return fail(ReasonMalformed, "it cannot be read: %v", err)
	}
	raw := key.raw()
	comment := ed25519.Verify(raw[:], append(s.Signature.Signature[:], s.TrustedComment...), s.CommentSignature[:])
	message := s.signs(key, claim.message())
	switch {
	case comment && s.TrustedComment != claim.comment():
		return fail(ReasonReplayed, "its signature is one of %.200q", s.TrustedComment)
	case comment && !message:
		return fail(ReasonMismatch, "its signature by the key %s is over other content than %s", s.keyID(), claim.Hash)
	case !comment && message:
		return fail(ReasonComment, "the trusted comment of its signature was changed to %.200q", s.TrustedComment)
	case !minisign.Verify(key.key, claim.message(), text):
		return fail(ReasonKeyMismatch, "its signature names the key %s, and is not by that key", s.keyID())
	}
	return nil
}

// Authority is who publishes connectors: the scheme and the owner of their FQNs, as in
// github://acme, in lower case, because the services compare owners without case.
type Authority string

// AuthorityOf returns the authority of a connector.
func AuthorityOf(fqn spec.FQN) Authority {
	scheme, _, _ := strings.Cut(string(fqn), "://")
	return Authority(strings.ToLower(scheme + "://" + fqn.Owner()))
}

// ParseAuthority reads an authority. The FQN of a connector stands for its own.
func ParseAuthority(text string) (Authority, error) {
	text = strings.TrimSuffix(text, "/")
	fqn, err := spec.ParseFQN(text)
	if err != nil {
		fqn, err = spec.ParseFQN(text + "/any")
	}
	if err != nil {
		return "", fmt.Errorf("read the authority %q: it is not of the form github://OWNER", text)
	}
	if fqn.IsLocal() {
		return "", fmt.Errorf("read the authority %q: connectors of this machine are not signed", text)
	}
	return AuthorityOf(fqn), nil
}

// Reason is why a signature is refused.
type Reason string

// The reasons. Each is the details.reason of an error whose class is signature_failure.
const (
	ReasonMissing     Reason = "signature_missing"      // the authority signs, and there is none
	ReasonUnexpected  Reason = "signature_unexpected"   // on a connector of this machine
	ReasonNotAFile    Reason = "signature_not_a_file"   // a link, a pipe, a directory
	ReasonTooLarge    Reason = "signature_too_large"    // more than [MaxSize]
	ReasonTruncated   Reason = "signature_truncated"    // it ends too early
	ReasonMalformed   Reason = "signature_malformed"    // not minisign's format
	ReasonMismatch    Reason = "signature_mismatch"     // over other content
	ReasonReplayed    Reason = "signature_replayed"     // of another connector or version
	ReasonComment     Reason = "signature_comment"      // the trusted comment was changed
	ReasonKeyUnknown  Reason = "signature_key_unknown"  // no key is known, and none comes with it
	ReasonKeyMismatch Reason = "signature_key_mismatch" // not by the key whose id it names
	ReasonKeyChanged  Reason = "publisher_key_changed"  // by another key than the authority's
	ReasonRevoked     Reason = "publisher_key_revoked"  // by a key that was removed
)

// Error is returned for a connector whose signature is refused.
type Error struct {
	Claim   Claim
	Reason  Reason
	Message string
	KeyID   KeyID // that the signature names; 0 if it could not be read
}

func (e *Error) Error() string {
	if e.Claim.FQN == "" {
		return e.Message
	}
	return fmt.Sprintf("verify %s: %s", e.Claim.comment(), e.Message)
}

// ErrorClass and ErrorReason return those in the error object of --json.
func (*Error) ErrorClass() string    { return "signature_failure" }
func (e *Error) ErrorReason() string { return string(e.Reason) }

// ErrorConnector returns the connector in the error object of --json, "" if the error is not about one.
func (e *Error) ErrorConnector() string {
	if e.Claim.FQN == "" {
		return ""
	}
	return e.Claim.comment()
}

// Hint returns err with what to do about it, if it is an [*Error].
func Hint(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	authority := AuthorityOf(e.Claim.FQN)
	switch e.Reason {
	case ReasonKeyChanged, ReasonRevoked:
		return hint.New(err, "do not install it unless %[1]s has announced this key; if so, get it from there and run: "+
			"aileron connector keys add %[1]s FILE", authority)
	case ReasonKeyUnknown:
		return hint.New(err, "get the publisher's key and run: aileron connector keys add %s FILE", authority)
	case ReasonMissing:
		return hint.New(err, "get the signed aileron.tar.gz from the publisher; only if %[1]s has stopped signing: "+
			"aileron connector keys remove %[1]s --forget", authority)
	case ReasonUnexpected:
		return hint.New(err, "remove its signature.sig")
	}
	return hint.New(err, "do not install it; get the connector from its publisher again")
}
