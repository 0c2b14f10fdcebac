package scrub

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"slices"
)

// textForms are the secret as it is, and as servers write it without any
// encoding: a plus for a blank, a UUID without its dashes.
func textForms(secret []byte) []needle {
	short := len(secret) < Window
	forms := []needle{{symbols: bytes.Clone(secret), short: short}}
	if bytes.ContainsRune(secret, ' ') { // form encoding
		forms = append(forms, needle{symbols: bytes.ReplaceAll(secret, []byte(" "), []byte("+")), short: short})
	}
	digits := bytes.ReplaceAll(secret, []byte("-"), nil) // a UUID is also written without its dashes
	if len(digits) < len(secret) && len(digits) >= Window && allHex(digits) {
		forms = append(forms, needle{symbols: digits})
	}
	return forms
}

func allHex(s []byte) bool {
	return !bytes.ContainsFunc(s, func(r rune) bool { return r > 'f' || !isHex(byte(r)) })
}

// base64Forms are the encodings of secret behind prefix, in both alphabets:
// whole, and the characters that are certain at each of the three alignments
// inside something longer.
func base64Forms(secret, prefix []byte) []needle {
	var forms []needle
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := []byte(enc.EncodeToString(append(bytes.Clone(prefix), secret...)))
		// Behind a prefix only what the secret has a part in: the name alone is no secret.
		from := len(prefix) * 8 / 6
		forms = append(forms, needle{whole[from:], len(secret) < Window, 6, 6*from - 8*len(prefix)})
		if len(prefix) == 0 {
			forms = append(forms, aligned(secret, 3, 6, enc.EncodeToString)...)
		}
	}
	return slices.DeleteFunc(forms, func(n needle) bool { return len(n.symbols) < gram })
}

// base32Forms are the encodings of secret in both alphabets of RFC 4648, whole
// and at each of the five alignments.
func base32Forms(secret []byte) []needle {
	var forms []needle
	for _, alphabet := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
		enc := alphabet.WithPadding(base32.NoPadding)
		forms = append(forms, needle{[]byte(enc.EncodeToString(secret)), len(secret) < Window, 5, 0})
		forms = append(forms, aligned(secret, 5, 5, enc.EncodeToString)...)
	}
	return forms
}

// aligned are the characters that are secret's alone when it begins at each of
// so many places in a group; a character stands for so many bits.
func aligned(secret []byte, places, bits int, encode func([]byte) string) []needle {
	var forms []needle
	for shift := range places {
		padded := encode(append(make([]byte, shift), secret...))
		from := (shift*8 + bits - 1) / bits    // the first character that is the secret's alone
		to := (shift + len(secret)) * 8 / bits // the last
		forms = append(forms, needle{[]byte(padded[from:to]), len(secret) < Window, bits, bits*from - 8*shift})
	}
	return forms
}
