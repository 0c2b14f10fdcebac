package hostport

import (
	"errors"
	"strings"
)

// The bounds of RFC 1035 section 2.3.4, in the text form without a dot at the end.
const (
	maxName  = 253
	maxLabel = 63
)

var (
	errNameLength   = errors.New("it is empty or longer than 253 bytes")
	errLabelLength  = errors.New("it has an empty label, or one of more than 63 bytes")
	errLabelHyphen  = errors.New("it has a label that begins or ends with a hyphen")
	errNameByte     = errors.New("it has a character other than a letter, a digit, a hyphen or a dot")
	errNameIsNumber = errors.New("it ends in a number, which resolvers may read as an address")
)

// ParseName returns the host name s in its canonical form, lower case.
//
// It accepts the names of RFC 1123 section 2.1: labels of letters, digits and
// inner hyphens, each of 1 to 63 bytes, 253 bytes in all. One label is a name.
// A dot at the end is refused: a caller that reads the wire form of DNS removes
// it first. An internationalised name is written in its A-label form of RFC
// 5890 (xn--…): a Unicode name is refused, as two programs may map it to two
// names.
//
// A name whose last label is a number, decimal or 0x with hexadecimal digits,
// is refused, whatever stands before it. Some resolvers read such a name as an
// IPv4 address (127.1, 0x7f000001, 0177.0.0.1); this is the "ends in a number"
// rule of the WHATWG URL standard. ParseName accepts no address at all.
//
// An error states which rule s breaks and does not contain s.
func ParseName(s string) (string, error) {
	if s == "" || len(s) > maxName {
		return "", errNameLength
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
		last = label
	}
	if isNumber(last) {
		return "", errNameIsNumber
	}
	// Only now: lower-casing before the check would make "k" of the Kelvin sign.
	return strings.ToLower(s), nil
}

// checkLabel returns an error unless label is one of a host name.
func checkLabel(label string) error {
	if label == "" || len(label) > maxLabel {
		return errLabelLength
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return errLabelHyphen
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return errNameByte
		}
	}
	return nil
}

// isNumber reports whether an IPv4 parser may read label as a number: decimal
// or octal digits, or 0x with hexadecimal digits or none.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
