package wire

// IsToken reports whether s is a valid header field name.
func IsToken(s string) bool { return isToken(s) }

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken[T string | []byte](s T) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// TrimBlanks returns s without the optional white space around a field's value (RFC 9110
// section 5.6.3).
func TrimBlanks(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// HasControl reports whether s has a control character other than a tab.
func HasControl(s string) bool {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		// The high bit of each byte that is less than a blank, and of each that is DEL; those
		// behind one may have it too.
		if del := w ^ 0x7f*low; ((w-' '*low)&^w|(del-low)&^del)&high != 0 && hasControl(s[:8]) {
			return true
		}
	}
	return hasControl(s)
}

func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// tokenBytes are the bytes of a token.
var tokenBytes = func() (table [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		table[c] = true
	}
	return table
}()
