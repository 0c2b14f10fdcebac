package learn

import (
	"strings"
)

// Kind is what a segment of a path looks like. The zero value is Literal.
type Kind int

// The kinds of segments. All but Literal are values, and become variables.
const (
	Literal Kind = iota
	Number
	ID      // a UUID, a ULID, or a name with a generated part
	Hash    // hexadecimal digits
	Date    // 2026-11-28, or a time
	Version // 1.2.3, or a file with a version in its name
	Token   // what may be a secret, and must not be written down
	Text    // what a literal of a template cannot be, or is of one person
)

// maxLiteral is the longest segment in bytes that is taken for a literal.
const maxLiteral = 64

// secretWords are the literals behind which a longer segment is taken for a secret.
var secretWords = map[string]bool{"token": true, "tokens": true, "secret": true, "secrets": true, "password": true,
	"passwords": true, "apikey": true, "api_key": true, "api-key": true, "webhook": true, "webhooks": true,
	"hooks": true, "invite": true, "invites": true, "reset": true, "verify": true, "session": true, "sessions": true}

// secretPrefixes are the beginnings of well-known tokens.
var secretPrefixes = []string{"ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_", "pk_",
	"rk_", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-", "npm_", "pypi-", "akia", "asia", "eyj", "ya29.", "aiza", "whsec_",
	"hf_", "dop_v1_", "lin_api_", "secret_"}

// KindOf returns the kind of a segment, which is escaped as on the wire, behind the segments before it.
func KindOf(segment string, before []string) Kind {
	last := ""
	if len(before) > 0 {
		last = strings.ToLower(before[len(before)-1])
	}
	switch {
	case segment == "":
		return Literal
	case isToken(segment) || secretWords[last] && len(segment) >= 8 && !isWord(segment):
		return Token
	case isDigits(segment):
		return Number
	case isUUID(segment) || isULID(segment):
		return ID
	case isHash(segment):
		return Hash
	case isDate(segment):
		return Date
	case isAPIVersion(segment, last, len(before)):
		return Literal
	case hasVersion(segment):
		return Version
	case len(segment) > maxLiteral, !isPlain(segment), strings.IndexByte(segment, '@') > 0:
		return Text
	case isGenerated(segment):
		return ID
	}
	return Literal
}

// isPlain reports whether package spec takes a segment as a literal of a template.
func isPlain(s string) bool {
	for _, c := range []byte(s) {
		if !isLetter(c) && !isDigit(c) && strings.IndexByte("-._~!$&'()*+,=:@", c) < 0 {
			return false
		}
	}
	return s != "." && s != ".."
}

// isValue reports whether package spec takes a segment as the value of a variable, with escaped slashes where slash is
// true.
func isValue(s string, slash bool) bool {
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "\\;{}\"<>^`|# \x7f") {
		return false
	}
	for i := 0; i+2 < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		if s[i+1] == '0' || s[i+1] == '1' { // control characters
			return false
		}
		switch strings.ToLower(s[i+1 : i+3]) {
		case "2e", "5c", "3b", "25", "7f":
			return false
		case "2f":
			if !slash || i == 0 || i+3 == len(s) || s[i+3:min(i+6, len(s))] == s[i:i+3] {
				return false
			}
		}
	}
	return true
}

// hasSlash reports whether a segment has an escaped slash.
func hasSlash(s string) bool { return strings.Contains(strings.ToLower(s), "%2f") }

// LooksSecret reports whether a text may be a secret: a token, or a generated value that is as long as one.
func LooksSecret(text string) bool {
	return isToken(text) || len(text) >= 16 && (isHash(text) || isUUID(text) || isULID(text) || isDigits(text))
}

// counts is what a text is made of.
type counts struct {
	lower, upper, digits, other int
	turns                       int // from letters to digits and back
	cases                       int // from upper case to lower case and back
	vowels                      int
}

func count(s string) (n counts) {
	var before byte
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z':
			n.lower++
		case c >= 'A' && c <= 'Z':
			n.upper++
		case isDigit(c):
			n.digits++
		default:
			n.other++
		}
		if strings.IndexByte("aeiouyAEIOUY", c) >= 0 {
			n.vowels++
		}
		if i > 0 && (isDigit(before) && isLetter(c) || isLetter(before) && isDigit(c)) {
			n.turns++
		}
		if i > 0 && isLetter(before) && isLetter(c) && (before >= 'a') != (c >= 'a') {
			n.cases++
		}
		before = c
	}
	return n
}

// isToken reports whether a text looks like a secret: what a generator makes, and no person. It is a guess: some
// generated texts pass, the more the shorter they are ([isDrawn], [hasRandomLetters]).
func isToken(s string) bool {
	lower := strings.ToLower(s)
	for _, p := range secretPrefixes {
		i := strings.Index(lower, p)
		if i < 0 || i > 0 && (isLetter(s[i-1]) || isDigit(s[i-1])) {
			continue
		}
		if rest := s[i+len(p):]; len(rest) >= 8 && !isWord(rest) {
			return true
		}
	}
	if hasRandomLetters(s) {
		return true
	}
	if len(s) < minRun || isUUID(s) || isULID(s) || isDigits(s) || isDate(s) {
		return false
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-.,+=~!$&'()*:@%", r) }) {
		if isTokenPart(part) || isDrawn(part) {
			return true
		}
	}
	// Separators of base64 do not divide it into what can be recognised.
	n := count(s)
	return len(s) >= 20 && n.upper > 2 && n.lower > 2 && n.digits > 2 && n.turns >= 4 && n.cases >= 3
}

// isTokenPart reports whether a text without separators looks like a secret.
func isTokenPart(s string) bool {
	n := count(s)
	letters := n.lower + n.upper
	switch {
	case len(s) < 12:
		return false
	case isHexadecimal(s):
		return false // a hash, which is a variable as well
	case n.upper > 0 && n.lower > 0 && n.digits > 0 && (n.turns >= 3 || n.cases >= 4 && n.turns >= 2):
		return true
	case n.digits > 0 && n.turns >= 4 && len(s) >= 16, n.lower == 0 && n.digits > 0 && n.turns >= 3:
		return true
	case len(s) >= 16 && n.upper > 2 && n.lower > 2 && n.cases*5 >= len(s)*2:
		return true
	}
	return len(s) >= 16 && letters > 0 && n.vowels*100 < letters*15
}

// isWord reports whether a text consists of words: letters, and separators between them.
func isWord(s string) bool {
	n := count(s)
	return n.digits == 0 && n.vowels*100 >= (n.lower+n.upper)*15 && n.cases*5 < len(s)*2 && isPlain(s)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isHexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// isUUID reports whether a text is a UUID (RFC 9562).
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && !isHexadecimal(s[i:i+1]) {
			return false
		}
	}
	return true
}

// isULID reports whether a text is a ULID.
func isULID(s string) bool {
	return len(s) == 26 && s[0] <= '7' && strings.Trim(strings.ToUpper(s), "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

// isHash reports whether a text is a hash in hexadecimal digits, with its algorithm before it or not.
func isHash(s string) bool {
	if algorithm, rest, ok := strings.Cut(s, ":"); ok && strings.HasPrefix(algorithm, "sha") {
		s = rest
	}
	n := count(s)
	return len(s) >= 7 && isHexadecimal(s) && n.digits > 0 && n.digits < len(s) || len(s) >= 32 && isHexadecimal(s)
}

// isDate reports whether a text begins with a date: 2026-11-28.
func isDate(s string) bool {
	return len(s) >= 10 && isDigits(s[:4]) && s[4] == '-' && isDigits(s[5:7]) && s[7] == '-' && isDigits(s[8:10]) &&
		(len(s) == 10 || strings.Trim(s[10:], "0123456789T:Z+-._%Aa") == "")
}

// isAPIVersion reports whether a segment is the version of an API: v1, v1beta2, or 2.0 at the beginning.
func isAPIVersion(s, last string, depth int) bool {
	if number, ok := strings.CutPrefix(s, "v"); ok {
		for _, word := range []string{"alpha", "beta"} {
			major, minor, cut := strings.Cut(number, word)
			if cut && isDigits(major) && strings.Trim(minor, "0123456789") == "" {
				return true
			}
		}
		if isDigits(number) && len(number) < 4 {
			return true
		}
	}
	return (depth == 0 || last == "api" || last == "apis") && len(s) <= 6 &&
		strings.Trim(strings.TrimPrefix(s, "v"), "0123456789.") == ""
}

// hasVersion reports whether a segment has a version in it: a dot between digits.
func hasVersion(s string) bool {
	for i := 1; i+1 < len(s); i++ {
		if s[i] == '.' && isDigit(s[i-1]) && isDigit(s[i+1]) {
			return true
		}
	}
	return strings.HasPrefix(s, "v") && strings.Contains(s, "-0.") // of Go without a tag
}

// isGenerated reports whether a part of a segment is generated: digits and letters in turns, as in
// web-6d4cf56db6-x2x7k.
func isGenerated(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_.:~", r) }) {
		n := count(part)
		if len(part) >= 5 && n.turns >= 3 || len(part) >= 8 && n.lower == 0 && n.digits > 0 && n.upper > 1 {
			return true
		}
	}
	return false
}
