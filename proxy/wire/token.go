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

// tokenBytes are the bytes of a token.
var tokenBytes = func() (table [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		table[c] = true
	}
	return table
}()
