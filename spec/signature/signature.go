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
// remembers it, and no other key can sign for that authority until a person adds one, or
// a key that is known vouches for it.
//
// A package may carry several signatures, one after the other in signature.sig, and a
// file trust with vouches: [SecretKey.Vouch] makes one. A vouch is a signature, too, over
// the statement "aileron trust AUTHORITY PUBLICKEY" with the same text as its trusted
// comment: the next key of AUTHORITY is PUBLICKEY. It is taken up when that key has also
// signed the package; the key that vouched then signs nothing newer. What it had signed
// stays verified. No time is part of any of this: who holds a key can write any.
//
// A signature proves who published a connector. It grants nothing: what a connector may
// do is decided by the person who installs it.
//
// Open this file first: Check, and the reasons of a refusal. parse.go reads
// signature.sig, key.go keys; vouch.go follows a chain of keys; keys.go decides which
// keys are known, and keysfile.go keeps them.
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

	// Retired reports that the only known key that signed it was replaced by another one since. What was installed
	// before stays verified; what is new is an older release, or by one who took the old key: see [Status.Refusal].
	Retired bool

	// Replaces are the keys that Key takes the place of, if that is not known yet: a key of the authority, and those
	// between it and Key, each of which vouches for the next. [Keys.Rotate] makes Key known in their place.
	Replaces []PublicKey
}

// Check verifies what a package carries, its signatures and vouches, against what is known of the keys of its
// authority. sig is nil if it carries nothing: then the status is the zero value, unless the authority signs its
// connectors. A refusal is an [*Error].
//
// One signature by a key of the authority is enough, whatever other keys have signed. Without one, a key for which a
// key of the authority vouches, over any chain of at most [MaxVouches], is as good.
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
	e, err := parse(sig)
	if err == nil {
		err = e.checkVouches(authority)
	}
	var st Status
	if err == nil {
		st, err = e.judge(known, claim)
	}
	if err != nil {
		err.Claim = claim
		return Status{}, err
	}
	return st, nil
}

// judge returns the status of a claim.
func (e evidence) judge(known Trust, claim Claim) (Status, *Error) {
	for _, s := range e.signatures {
		if key, found, err := s.among(known.Keys, known.Authority); err != nil {
			return Status{}, err
		} else if found {
			if err := s.verify(key, claim); err != nil {
				return Status{}, err
			}
		}
	}
	if st, found, err := e.rotation(known, claim); found || err != nil {
		return st, err
	}
	for _, s := range e.signatures {
		if key, found, _ := s.among(known.Keys, known.Authority); found {
			return Status{Signed: true, Key: key}, nil
		}
	}
	for _, s := range e.signatures {
		if known.isRevoked(s) {
			return Status{}, &Error{Reason: ReasonRevoked, KeyID: s.keyID(), Message: fmt.Sprintf(
				"it is signed with the key %s, which was removed from the keys of %s", s.keyID(), known.Authority)}
		}
	}
	for _, s := range e.signatures {
		if key, found, err := s.among(known.Retired, known.Authority); err != nil {
			return Status{}, err
		} else if found {
			return Status{Signed: true, Key: key, Retired: true}, s.verify(key, claim)
		}
	}
	if err := e.vouchedInVain(known); err != nil {
		return Status{}, err
	}
	return e.signatures[0].first(known, claim)
}

// among returns the key of a list that the signature names, and reports whether there is one. It is an error if the
// signature comes with another key of that id.
func (s signed) among(list []Known, authority Authority) (PublicKey, bool, *Error) {
	i := find(list, s.keyID())
	if i < 0 {
		return PublicKey{}, false, nil
	}
	if offered, offers := s.offered(); offers && !list[i].Key.Equal(offered) {
		return PublicKey{}, false, &Error{Reason: ReasonKeyMismatch, KeyID: s.keyID(), Message: fmt.Sprintf(
			"it is signed with another key that has the id %s of the key of %s", s.keyID(), authority)}
	}
	return list[i].Key, true, nil
}

// first returns the status of a signature by a key that is not known: that of the first key of an authority of which
// no key is known.
func (s signed) first(known Trust, claim Claim) (Status, *Error) {
	fail := func(reason Reason, format string, args ...any) (Status, *Error) {
		return Status{}, &Error{Reason: reason, KeyID: s.keyID(), Message: fmt.Sprintf(format, args...)}
	}
	offered, offers := s.offered()
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
	return Status{Signed: true, First: true, Key: offered}, s.verify(offered, claim)
}

// Refusal returns the error for a connector that is not installed and is signed only with a key that was replaced, and
// nil for any other: the holder of that key could publish any bytes under an older version.
func (st Status) Refusal(known Trust, claim Claim) error {
	if !st.Retired {
		return nil
	}
	return &Error{Claim: claim, Reason: ReasonRetired, KeyID: st.Key.ID(), Message: fmt.Sprintf(
		"it is signed with the key %s, which %s has replaced (%s)", st.Key.ID(), known.Authority, known.ids())}
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
	ReasonRevoked     Reason = "publisher_key_revoked"  // by a key that was removed, or one for which such a key vouches
	ReasonRetired     Reason = "publisher_key_retired"  // by a key that was replaced, or one for which such a key vouches

	ReasonTooMany       Reason = "signature_too_many"       // more than [MaxSignatures]
	ReasonChainTooLong  Reason = "publisher_trust_too_long" // more than [MaxVouches]
	ReasonVouch         Reason = "publisher_trust_invalid"  // a vouch that is none, or that leads back
	ReasonVouchReplayed Reason = "publisher_trust_replayed" // a vouch of another publisher
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
	case ReasonRetired:
		return hint.New(err, "get a release that is signed with the new key, or pass the hash that you know it by (--hash)")
	}
	return hint.New(err, "do not install it; get the connector from its publisher again")
}
