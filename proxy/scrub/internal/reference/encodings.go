package reference

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// Secret is a secret, with the user name that stands in front of it in basic authentication.
type Secret struct{ Value, Username string }

// encoding is one encoding of a secret, in lower case: case does not count. must are the parts of it that have
// to be found: those that 16 bytes of the secret determine, or the whole. may are those that may be found besides,
// because they leave no more than the bits at both ends to a guess.
type encoding struct {
	in        alphabet
	symbols   string
	must, may []part
}

// equal reports whether both encodings are the same.
func (e encoding) equal(other encoding) bool {
	return e.in == other.in && e.symbols == other.symbols && slices.Equal(e.must, other.must) &&
		slices.Equal(e.may, other.may)
}

// part is symbols[from:to].
type part struct{ from, to int }

// encodingsOf returns the encodings of a credential.
func encodingsOf(c Secret) []encoding {
	secret := c.Value
	fragment := min(len(secret), 16) // a shorter secret is found as a whole
	if len(secret) < 16 {
		fragment = len(secret)
	}
	var all []encoding
	text := func(s string) {
		all = append(all, encoding{in: asText, symbols: s, must: parts(len(s), min(len(s), 16))})
	}
	text(secret)
	if strings.Contains(secret, " ") {
		text(strings.ReplaceAll(secret, " ", "+"))
	}
	if short := strings.ReplaceAll(secret, "-", ""); short != secret && len(short) >= 16 &&
		strings.Trim(strings.ToLower(short), "0123456789abcdef") == "" {
		text(short)
	}
	digits := encoding{in: asHex, symbols: hex.EncodeToString([]byte(secret)), may: parts(2*len(secret), 2*fragment)}
	for _, p := range parts(len(secret), fragment) {
		digits.must = append(digits.must, part{2 * p.from, 2 * p.to})
	}
	all = append(all, digits)
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, inBits(asBase64, secret, 3, 6, fragment, enc.EncodeToString)...)
		for _, user := range []string{"", c.Username + ":"} { // with the bits that the neighbours have a part in
			whole := enc.EncodeToString([]byte(user + secret))[len(user)*8/6:]
			least := 20
			if len(secret) < 16 {
				least = len(whole)
			}
			all = append(all, encoding{in: asBase64, symbols: whole, may: parts(len(whole), min(len(whole), least))})
		}
	}
	for _, enc := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
		enc = enc.WithPadding(base32.NoPadding)
		all = append(all, inBits(asBase32, secret, 5, 5, fragment, enc.EncodeToString)...)
		whole := enc.EncodeToString([]byte(secret))
		least := 24
		if len(secret) < 16 {
			least = len(whole)
		}
		all = append(all, encoding{in: asBase32, symbols: whole, may: parts(len(whole), min(len(whole), least))})
	}
	for i := range all {
		all[i].symbols = strings.ToLower(all[i].symbols)
	}
	return all
}

// parts returns every part of so many symbols.
func parts(length, of int) []part {
	var all []part
	for i := 0; i+of <= length; i++ {
		all = append(all, part{i, i + of})
	}
	return all
}

// inBits returns, for each of so many places in a group of base64 or base32 at which secret may begin, the characters
// that secret alone determines. A character encodes so many bits.
func inBits(in alphabet, secret string, places, bits, fragment int, encode func([]byte) string) []encoding {
	var all []encoding
	for place := range places {
		text := encode([]byte(strings.Repeat("\x00", place) + secret))
		characters := func(from, to int) part { // those of secret[from:to]
			return part{(8*(place+from) + bits - 1) / bits, 8 * (place + to) / bits}
		}
		whole := characters(0, len(secret))
		e := encoding{in: in, symbols: text[whole.from:whole.to]}
		for _, p := range parts(len(secret), fragment) {
			c := characters(p.from, p.to)
			if len(secret) >= 16 && 8*(place+p.from) != bits*c.from {
				c.to = min(c.to, c.from+120/bits)
			}
			e.must = append(e.must, part{c.from - whole.from, c.to - whole.from})
		}
		if len(secret) >= 16 { // any 16 bytes have 20 characters of base64, or 24 of base32, for themselves
			e.may = parts(len(e.symbols), min(len(e.symbols), 120/bits))
		}
		all = append(all, e)
	}
	return all
}
