package signature

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/internal/hint"
)

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

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{ReasonMissing, ReasonUnexpected, ReasonNotAFile, ReasonTooLarge, ReasonTruncated, ReasonMalformed,
		ReasonMismatch, ReasonReplayed, ReasonComment, ReasonKeyUnknown, ReasonKeyMismatch, ReasonKeyChanged,
		ReasonRevoked}
}

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
