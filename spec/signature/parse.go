package signature

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"aead.dev/minisign"
)

// MaxSize is the size of the largest signature.sig. minisign's comments have at most
// 1 KiB and 8 KiB.
const MaxSize = 16 << 10

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

// parse reads a signature.sig: four lines as minisign writes them. A carriage return
// before a line end, and no end of the last line, are accepted, because both come from
// editors and version control; nothing else is.
func parse(data []byte) (signed, *Error) {
	fail := func(reason Reason, format string, args ...any) (signed, *Error) {
		return signed{}, &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
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
	untrusted, ok := strings.CutPrefix(lines[0], untrustedPrefix)
	switch {
	case !ok && strings.HasPrefix(untrustedPrefix, lines[0]):
		return fail(ReasonTruncated, "its signature ends in line 1")
	case !ok:
		return fail(ReasonMalformed, "its signature is not minisign's: line 1 does not begin with %q", untrustedPrefix)
	case len(lines) < 4:
		return fail(ReasonTruncated, "its signature ends after line %d of 4", len(lines))
	case len(lines) > 4:
		return fail(ReasonMalformed, "its signature has more than 4 lines")
	}
	trusted, ok := strings.CutPrefix(lines[2], trustedPrefix)
	if !ok {
		return fail(ReasonMalformed, "line 3 of its signature does not begin with %q", trustedPrefix)
	}
	// A signature of 64 bytes behind two of the algorithm and eight of the key id.
	message, err := decode(lines[1], 74, 2)
	if err != nil {
		return signed{}, err
	}
	comment, err := decode(lines[3], 64, 4)
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
