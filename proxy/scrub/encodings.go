package scrub

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"slices"
)

// textEncodings returns the secret as it is, and as servers write it without an
// escape: a plus for a blank, a UUID without its dashes.
func textEncodings(secret []byte) []encoding {
	short := len(secret) < Window
	encs := []encoding{{symbols: bytes.Clone(secret), short: short}}
	if bytes.ContainsRune(secret, ' ') { // form encoding
		encs = append(encs, encoding{symbols: bytes.ReplaceAll(secret, []byte(" "), []byte("+")), short: short})
	}
	digits := bytes.ReplaceAll(secret, []byte("-"), nil) // a UUID is also written without its dashes
	if len(digits) < len(secret) && len(digits) >= Window && allHex(digits) {
		encs = append(encs, encoding{symbols: digits})
	}
	return encs
}

func allHex(s []byte) bool {
	return !bytes.ContainsFunc(s, func(r rune) bool { return r > 'f' || !isHex(byte(r)) })
}

// base64Encodings returns the encodings of secret behind prefix, in both alphabets:
// whole, and the characters that are determined at each of the three alignments
// inside longer data.
func base64Encodings(secret, prefix []byte) []encoding {
	var encs []encoding
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := []byte(enc.EncodeToString(append(bytes.Clone(prefix), secret...)))
		// Behind a prefix only characters with bits of the secret: the user name alone is no secret.
		from := len(prefix) * 8 / 6
		encs = append(encs, encoding{whole[from:], len(secret) < Window, 6, 6*from - 8*len(prefix)})
		if len(prefix) == 0 {
			encs = append(encs, aligned(secret, 3, 6, enc.EncodeToString)...)
		}
	}
	return distinct(slices.DeleteFunc(encs, func(e encoding) bool { return len(e.symbols) < gramSize }))
}

// distinct returns the encodings of one secret without those whose hits are hits of another: the
// alphabets of base64 differ in two characters only, and what a long secret determines behind
// nothing is the beginning of its whole encoding.
func distinct(encs []encoding) []encoding {
	var kept []encoding
	for _, e := range encs {
		if !slices.ContainsFunc(kept, func(k encoding) bool {
			return k.bit == e.bit && bytes.HasPrefix(k.symbols, e.symbols) && (!e.short || len(k.symbols) == len(e.symbols))
		}) {
			kept = append(kept, e)
		}
	}
	return kept
}

// base32Encodings returns the encodings of secret in both alphabets of RFC 4648, whole
// and at each of the five alignments.
func base32Encodings(secret []byte) []encoding {
	var encs []encoding
	for _, alphabet := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
		enc := alphabet.WithPadding(base32.NoPadding)
		encs = append(encs, encoding{[]byte(enc.EncodeToString(secret)), len(secret) < Window, 5, 0})
		encs = append(encs, aligned(secret, 5, 5, enc.EncodeToString)...)
	}
	return distinct(encs)
}

// aligned returns, for each of so many places in a group at which secret may begin,
// the characters that secret alone determines; a character encodes so many bits.
func aligned(secret []byte, places, bits int, encode func([]byte) string) []encoding {
	var encs []encoding
	for shift := range places {
		padded := encode(append(make([]byte, shift), secret...))
		from := (shift*8 + bits - 1) / bits    // the first character with bits of the secret only
		to := (shift + len(secret)) * 8 / bits // the last
		encs = append(encs, encoding{[]byte(padded[from:to]), len(secret) < Window, bits, bits*from - 8*shift})
	}
	return encs
}
