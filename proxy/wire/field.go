package wire

import (
	"net/http"
	"strings"
)

// framingNames holds the folded names of the fields that decide how a body is
// read.
var framingNames = map[string]bool{
	"contentencoding": true, "transferencoding": true, "contentlength": true, "contenttype": true, "contentrange": true,
	"contenttransferencoding": true, "grpcencoding": true, "connectcontentencoding": true, "connection": true,
	"trailer": true, "te": true, "upgrade": true,
}

// IsFramingName reports whether name, folded, is the name of a field that decides
// how a body is read.
func IsFramingName(name string) bool { return framingNames[FoldFieldName(name)] }

// ResemblesFraming reports whether name is not spelled like a framing field but
// may be taken for one by a lenient recipient, as "Content-Encoding " with a blank
// in front of the colon, or Content_Encoding.
func ResemblesFraming(name string) bool { return !IsPlainFieldName(name) && IsFramingName(name) }

// IsPlainFieldName reports whether name consists of letters, digits and dashes
// alone.
func IsPlainFieldName(name string) bool {
	for i := range len(name) {
		if !plainBytes[name[i]] {
			return false
		}
	}
	return len(name) > 0
}

// plainBytes are letters, digits and dashes.
var plainBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = c < 0x80 && !notPlain(rune(c))
	}
	return table
}()

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
}

// FoldFieldName returns the letters and digits of name in lower case: two names
// that fold to one may be the same field to a lenient recipient.
func FoldFieldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || notPlain(r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// HasToken reports whether the comma-separated field name of h lists token, in
// any case.
func HasToken(h http.Header, name, token string) bool {
	for _, line := range h[name] {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
