package scrub

import "bytes"

// Classes of bytes, as bits of classOf.
const (
	hexDigit = 1 << iota
	hexDump  // a digit, or a separator of dumps
	base64Char
	blank     // white space
	nameStart // may follow & in an entity
	decimalDigit
	decimalGap // may separate the numbers of an array
)

var classOf = func() (c [256]uint8) {
	for b := range c {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		digit := b >= '0' && b <= '9'
		if digit {
			c[b] |= decimalDigit
		}
		if bytes.IndexByte([]byte(decimalGaps), byte(b)) >= 0 {
			c[b] |= decimalGap
		}
		if isHex(byte(b)) {
			c[b] |= hexDigit | hexDump
		}
		if b == 'x' || b == 'X' || b == '%' || bytes.IndexByte([]byte(hexGaps), byte(b)) >= 0 {
			c[b] |= hexDump
		}
		if letter || digit || b == '+' || b == '/' || b == '-' || b == '_' || b == '=' || b == '\\' || b == '%' || b == '&' ||
			b == ';' {
			c[b] |= base64Char
		}
		if b == ' ' || b == '\t' || b == '\r' || b == '\n' {
			c[b] |= blank
		}
		if letter || b == '#' {
			c[b] |= nameStart
		}
	}
	return c
}()

// Classes of bytes in the masks of a block, which depend on the set. See [Set.classify].
const (
	inToken   = iota // may be in a hit as it is, or in an escape
	inEscape         // begins an escape of a URL, JSON or HTML
	inEquals         // begins one of quoted-printable
	inHex            // a hexadecimal digit
	inLineEnd        // CR or LF
	inDump           // a digit of a dump, or a separator
	inBlank          // a blank or a tab
	inArray          // a digit of an array of decimal numbers, or a separator
)

// tables returns the classes for a search of these patterns.
func tables(of ...*patterns) *classTables {
	var class [256]uint8
	for b := range class {
		c, token := byte(b), false
		for _, p := range of {
			token = token || p.any[c]
		}
		class[b] = bit(inToken, token || isAlnum(c) || bytes.IndexByte([]byte(`\%&=;#{}`), c) >= 0) |
			bit(inEscape, c == '\\' || c == '%' || c == '&') | bit(inEquals, c == '=') | bit(inHex, isHex(c)) |
			bit(inLineEnd, c == '\r' || c == '\n') | bit(inDump, classOf[c]&hexDump != 0) | bit(inBlank, c == ' ' || c == '\t') |
			bit(inArray, classOf[c]&(decimalDigit|decimalGap) != 0)
	}
	for c := 0x81; c < len(class); c++ { // one class for all bytes that are not ASCII
		class[0x80] |= class[c]
	}
	for c := 0x81; c < len(class); c++ {
		class[c] = class[0x80]
	}
	return newClassTables(class)
}

func bit(k int, is bool) uint8 {
	if is {
		return 1 << k
	}
	return 0
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
