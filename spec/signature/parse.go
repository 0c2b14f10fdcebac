package signature

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"aead.dev/minisign"
)

// The bounds of what a package carries.
const (
	MaxSize       = 64 << 10 // bytes of its signatures and vouches together
	MaxSignatures = 8
	MaxVouches    = 16
)

// strict is base64 as minisign writes it: padded, with nothing in between.
var strict = base64.StdEncoding.Strict()

// The beginnings of lines in minisign's files, and of our untrusted comment.
const (
	untrustedPrefix = "untrusted comment: "
	trustedPrefix   = "trusted comment: "
	offerPrefix     = "public key "
)

// signed is a signature.sig that was parsed, and not verified.
type signed struct{ minisign.Signature }

func (s signed) keyID() KeyID { return KeyID(s.KeyID) }

// offered returns the key in the untrusted comment. It proves nothing.
func (s signed) offered() (PublicKey, bool) {
	text, ok := strings.CutPrefix(s.UntrustedComment, offerPrefix)
	if !ok {
		return PublicKey{}, false
	}
	key, err := parseKeyLine(text)
	return key, err == nil
}

// signs reports whether the signature of the message, without the comment, is by key.
func (s signed) signs(key PublicKey, message []byte) bool {
	raw := key.raw()
	return verifyMessage(raw[:], s.Algorithm, message, s.Signature.Signature[:])
}

// evidence is what a package carries, parsed, and not verified.
type evidence struct {
	signatures []signed // at least one
	vouches    []vouch
}

// parse reads blocks of four lines as minisign writes them: signatures and vouches, in any order. A carriage return
// before a line end, and no end of the last line, are accepted, because both come from editors and version control;
// nothing else is.
func parse(data []byte) (evidence, *Error) {
	e, err := parseBlocks(data)
	if err == nil {
		err = e.checkBounds()
	}
	if err == nil && len(e.signatures) == 0 {
		err = &Error{Reason: ReasonMalformed, Message: "it has no signature, but keys that vouch for others"}
	}
	return e, err
}

// parseBlocks reads blocks, however many.
func parseBlocks(data []byte) (e evidence, err *Error) {
	fail := func(reason Reason, format string, args ...any) (evidence, *Error) {
		return evidence{}, &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if len(data) > MaxSize {
		return fail(ReasonTooLarge, "its signature is larger than %d bytes", MaxSize)
	}
	text := string(data)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fail(ReasonMalformed, "its signature is not text")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	for at := 0; at < len(lines); at += 4 {
		s, err := parseBlock(lines[at:min(at+4, len(lines))], at)
		if err != nil {
			return evidence{}, err
		}
		if !s.isVouch() {
			e.signatures = append(e.signatures, s)
			continue
		}
		v, err := s.vouch()
		if err != nil {
			return evidence{}, err
		}
		e.vouches = append(e.vouches, v)
	}
	return e, nil
}

// checkBounds returns an error for more than a package may carry, and for two signatures of one key.
func (e evidence) checkBounds() *Error {
	switch {
	case len(e.signatures) > MaxSignatures:
		return &Error{Reason: ReasonTooMany,
			Message: fmt.Sprintf("it has %d signatures, at most %d", len(e.signatures), MaxSignatures)}
	case len(e.vouches) > MaxVouches:
		return &Error{Reason: ReasonChainTooLong, Message: fmt.Sprintf(
			"it has %d keys that vouch for others, at most %d", len(e.vouches), MaxVouches)}
	}
	for i, s := range e.signatures {
		for _, other := range e.signatures[:i] {
			if s.keyID() == other.keyID() {
				return &Error{Reason: ReasonMalformed, KeyID: s.keyID(),
					Message: fmt.Sprintf("it has two signatures that name the key %s", s.keyID())}
			}
		}
	}
	return nil
}

// parseBlock reads the up to four lines of a block, the first of which is line at+1 of its file.
func parseBlock(lines []string, at int) (signed, *Error) {
	fail := func(reason Reason, format string, args ...any) (signed, *Error) {
		return signed{}, &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	untrusted, ok := strings.CutPrefix(lines[0], untrustedPrefix)
	switch {
	case !ok && at == 0 && strings.HasPrefix(untrustedPrefix, lines[0]):
		return fail(ReasonTruncated, "its signature ends in line 1")
	case !ok:
		return fail(ReasonMalformed, "its signature is not minisign's: line %d does not begin with %q", at+1,
			untrustedPrefix)
	case len(lines) < 4:
		return fail(ReasonTruncated, "its signature ends after line %d of %d", at+len(lines), at+4)
	}
	trusted, ok := strings.CutPrefix(lines[2], trustedPrefix)
	if !ok {
		return fail(ReasonMalformed, "line %d of its signature does not begin with %q", at+3, trustedPrefix)
	}
	// A signature of 64 bytes behind two of the algorithm and eight of the key id.
	message, err := decode(lines[1], 74, at+2)
	if err != nil {
		return signed{}, err
	}
	comment, err := decode(lines[3], 64, at+4)
	if err != nil {
		return signed{}, err
	}
	var s minisign.Signature
	line := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	canonical := untrustedPrefix + untrusted + "\n" + line(message) + "\n" + trustedPrefix + trusted + "\n" + line(comment)
	if err := s.UnmarshalText([]byte(canonical)); err != nil {
		return fail(ReasonMalformed, "its signature cannot be read: %v", err)
	}
	return signed{s}, nil
}

// decode returns the size bytes of a line in base64.
func decode(line string, size, number int) ([]byte, *Error) {
	data, err := strict.DecodeString(line)
	switch {
	case len(line) < base64.StdEncoding.EncodedLen(size) && strings.Trim(line, base64Alphabet) == "":
		return nil, &Error{Reason: ReasonTruncated, Message: fmt.Sprintf("line %d of its signature is cut short", number)}
	case err != nil || len(data) != size:
		return nil, &Error{Reason: ReasonMalformed,
			Message: fmt.Sprintf("line %d of its signature is not %d bytes in base64", number, size)}
	}
	return data, nil
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
