package signature

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// TrustFile is the name of the file in a connector's directory and archive that holds vouches, one after the other.
const TrustFile = "trust"

// vouchPrefix begins the statement of a vouch. The statement of a signature begins with the scheme of an FQN.
const vouchPrefix = "aileron trust "

// vouch is a signature over the statement that a key is the next one of an authority.
type vouch struct {
	signed
	authority Authority
	next      PublicKey
}

// statement returns what a vouch signs.
func statement(a Authority, next PublicKey) string {
	return vouchPrefix + string(a) + " " + next.String()
}

// isVouch reports whether a block is, by its trusted comment, a vouch.
func (s signed) isVouch() bool { return strings.HasPrefix(s.TrustedComment, vouchPrefix) }

// vouch reads the statement of a vouch.
func (s signed) vouch() (vouch, *Error) {
	fail := func(format string, args ...any) (vouch, *Error) {
		return vouch{}, &Error{Reason: ReasonVouch, KeyID: s.keyID(), Message: fmt.Sprintf(format, args...)}
	}
	of, text, _ := strings.Cut(strings.TrimPrefix(s.TrustedComment, vouchPrefix), " ")
	authority, err := ParseAuthority(of)
	if err != nil || string(authority) != of {
		return fail("the key %s vouches for a key of %.100q, which is no publisher", s.keyID(), of)
	}
	next, err := parseKeyLine(text)
	if err != nil {
		return fail("the key %s vouches for %.100q: %v", s.keyID(), text, err)
	}
	return vouch{s, authority, next}, nil
}

// isBy reports whether a vouch is by key.
func (v vouch) isBy(key PublicKey) bool {
	raw, text := key.raw(), statement(v.authority, v.next)
	comment := ed25519.Verify(raw[:], append(slices.Clone(v.Signature.Signature[:]), v.TrustedComment...),
		v.CommentSignature[:])
	return comment && v.TrustedComment == text && v.signs(key, []byte(text))
}

// checkVouches returns an error for vouches that no honest publisher makes, whether they are needed or not: of another
// publisher, for the key itself, two of one key, and two for one key.
func (e evidence) checkVouches(authority Authority) *Error {
	for i, v := range e.vouches {
		fail := func(reason Reason, format string, args ...any) *Error {
			return &Error{Reason: reason, KeyID: v.keyID(), Message: fmt.Sprintf(format, args...)}
		}
		offered, offers := v.offered()
		switch {
		case v.authority != authority:
			return fail(ReasonVouchReplayed, "the key %s vouches for a key of %s, and not of %s", v.keyID(), v.authority,
				authority)
		case v.next.ID() == v.keyID(), offers && offered.sameKey(v.next):
			return fail(ReasonVouch, "the key %s vouches for itself", v.keyID())
		}
		for _, other := range e.vouches[:i] {
			switch {
			case other.keyID() == v.keyID():
				return fail(ReasonVouch, "the key %s vouches for two keys", v.keyID())
			case other.next.ID() == v.next.ID(), other.next.sameKey(v.next):
				return fail(ReasonVouch, "two keys vouch for the key %s", v.next.ID())
			}
		}
	}
	return nil
}

// by returns the vouch that names a key as its signer.
func (e evidence) by(id KeyID) (vouch, bool) {
	i := slices.IndexFunc(e.vouches, func(v vouch) bool { return v.keyID() == id })
	if i < 0 {
		return vouch{}, false
	}
	return e.vouches[i], true
}

// signature returns the signature by a key, verified. One by another key that names its id is an error.
func (e evidence) signature(key PublicKey, claim Claim) (bool, *Error) {
	for _, s := range e.signatures {
		if s.keyID() == key.ID() {
			return true, s.verify(key, claim)
		}
	}
	return false, nil
}

// rotation returns the status of a claim that is signed by a key for which a key of the authority vouches, and reports
// whether there is such a key: the last of its chain that has signed.
func (e evidence) rotation(known Trust, claim Claim) (st Status, found bool, err *Error) {
	for _, start := range known.Keys {
		chain, err := e.follow(known, start.Key)
		if err != nil {
			return Status{}, false, err
		}
		for n := len(chain) - 1; n > 0; n-- {
			signs, err := e.signature(chain[n], claim)
			if err != nil {
				return Status{}, false, err
			}
			if signs {
				return Status{Signed: true, Key: chain[n], Replaces: chain[:n]}, true, nil
			}
		}
	}
	return Status{}, false, nil
}

// follow returns a key of the authority, and those that follow it, each of which the one before it vouches for. A chain
// that comes to a key that was removed or replaced, or back to itself, is an error: it could only undo a decision. It
// ends, as no key has two vouches, and none is in it twice.
func (e evidence) follow(known Trust, key PublicKey) ([]PublicKey, *Error) {
	chain := []PublicKey{key}
	for {
		last := chain[len(chain)-1]
		v, found := e.by(last.ID())
		if !found {
			return chain, nil
		}
		fail := func(reason Reason, format string, args ...any) ([]PublicKey, *Error) {
			return nil, &Error{Reason: reason, KeyID: v.next.ID(), Message: fmt.Sprintf(format, args...)}
		}
		switch isNext := func(k PublicKey) bool { return k.sameKey(v.next) || k.ID() == v.next.ID() }; {
		case !v.isBy(last):
			return fail(ReasonVouch, "it has a vouch for the key %s that names the key %s, and is not by that key",
				v.next.ID(), last.ID())
		case slices.ContainsFunc(chain, isNext):
			return fail(ReasonVouch, "its chain of keys leads back to the key %s", v.next.ID())
		case has(known.Keys, v.next) && !slices.ContainsFunc(known.Keys, func(k Known) bool { return k.Key.Equal(v.next) }):
			return fail(ReasonVouch, "the key %s vouches for another key that has the id %s, or another id", last.ID(),
				v.next.ID())
		case has(known.Revoked, v.next):
			return fail(ReasonRevoked, "the key %s vouches for the key %s, which was removed from the keys of %s", last.ID(),
				v.next.ID(), known.Authority)
		case has(known.Retired, v.next):
			return fail(ReasonRetired, "the key %s vouches for the key %s, which %s has replaced", last.ID(), v.next.ID(),
				known.Authority)
		}
		chain = append(chain, v.next)
	}
}

// vouchedInVain returns the error for a claim by a key for which only keys vouch that were removed or replaced.
func (e evidence) vouchedInVain(known Trust) *Error {
	for _, v := range e.vouches {
		signs := slices.ContainsFunc(e.signatures, func(s signed) bool { return s.keyID() == v.next.ID() })
		id := func(k Known) bool { return k.Key.ID() == v.keyID() }
		switch {
		case !signs:
		case slices.ContainsFunc(known.Revoked, id):
			return &Error{Reason: ReasonRevoked, KeyID: v.next.ID(), Message: fmt.Sprintf("it is signed with the key %s, for "+
				"which the key %s vouches, which was removed from the keys of %s", v.next.ID(), v.keyID(), known.Authority)}
		case slices.ContainsFunc(known.Retired, id):
			return &Error{Reason: ReasonRetired, KeyID: v.next.ID(), Message: fmt.Sprintf("it is signed with the key %s, for "+
				"which the key %s vouches, which %s has replaced already", v.next.ID(), v.keyID(), known.Authority)}
		}
	}
	return nil
}

// Vouch returns the statement, signed, that next is the key of an authority after this one, for its file trust.
func (k SecretKey) Vouch(a Authority, next PublicKey) ([]byte, error) {
	if k.Public().sameKey(next) || k.Public().ID() == next.ID() {
		return nil, fmt.Errorf("vouch for the key %s: it is the key that vouches", next.ID())
	}
	text := statement(a, next)
	r := minisign.NewReader(strings.NewReader(text))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	made := r.SignWithComments(k.key, text, offerPrefix+k.Public().String())
	e, err := readTrustFile(a, made)
	if err != nil {
		return nil, err
	}
	if !e.vouches[0].isBy(k.Public()) {
		return nil, fmt.Errorf("vouch for the key %s: the key does not verify what it signs", next.ID())
	}
	return made, nil
}

// AddVouch returns the content of a file trust with one more vouch, after those that it has. The result is one that
// [Check] accepts.
func AddVouch(a Authority, file, vouch []byte) ([]byte, error) {
	if len(file) > 0 && file[len(file)-1] != '\n' {
		file = append(slices.Clip(file), '\n')
	}
	all := slices.Concat(file, vouch)
	_, err := readTrustFile(a, all)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CheckTrustFile returns an error for a file trust that [Check] refuses whatever is known.
func CheckTrustFile(a Authority, file []byte) error {
	_, err := readTrustFile(a, file)
	return err
}

// LastOf returns the keys of a file trust that are vouched for, and vouch for no other: those that sign from now on.
func LastOf(a Authority, file []byte) (keys []PublicKey, err error) {
	e, err := readTrustFile(a, file)
	for _, v := range e.vouches {
		if _, further := e.by(v.next.ID()); !further {
			keys = append(keys, v.next)
		}
	}
	return keys, err
}

// NewestFirst returns keys in the order in which they are to sign: none before one that follows it in the chains of a
// file trust, so that the first signature, which is the one that a new user trusts, is by a key that was not replaced.
func NewestFirst(a Authority, file []byte, keys []SecretKey) ([]SecretKey, error) {
	if len(file) == 0 {
		return keys, nil
	}
	e, err := readTrustFile(a, file)
	if err != nil {
		return nil, err
	}
	followed := func(k SecretKey) (n int) { // by so many keys
		for v, more := e.by(k.Public().ID()); more && n < MaxVouches; v, more = e.by(v.next.ID()) {
			n++
		}
		return n
	}
	sorted := slices.Clone(keys)
	slices.SortStableFunc(sorted, func(a, b SecretKey) int { return followed(a) - followed(b) })
	return sorted, nil
}

// readTrustFile reads a file trust, which has vouches alone.
func readTrustFile(a Authority, file []byte) (evidence, error) {
	e, err := parseBlocks(file)
	if err == nil && len(e.signatures) > 0 {
		err = &Error{Reason: ReasonVouch, Message: "it has a signature that vouches for no key"}
	}
	if err == nil {
		err = e.checkBounds()
	}
	if err == nil {
		err = e.checkVouches(a)
	}
	if err != nil {
		return evidence{}, fmt.Errorf("read the file %s: %w", TrustFile, err)
	}
	return e, nil
}
