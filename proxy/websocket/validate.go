package websocket

import "unicode/utf8"

// validateClose returns a violation for a close frame that no endpoint may send
// (RFC 6455 sections 5.5.1 and 7.4).
func validateClose(h header, payload []byte) error {
	if h.op != opClose || len(payload) == 0 {
		return nil
	}
	if len(payload) == 1 {
		return violation{protocolError, "a close frame has half a code"}
	}
	switch code := int(payload[0])<<8 | int(payload[1]); {
	case code < 1000, code == 1004, code == 1005, code == 1006, code > 1014 && code < 3000, code > 4999:
		return violation{protocolError, "a close frame has a code that is never sent"}
	case !utf8.Valid(payload[2:]):
		return violation{notUTF8, "the reason of a close frame is not UTF-8"}
	}
	return nil
}

// utf8State validates a text message in pieces (RFC 6455 section 8.1).
type utf8State struct {
	rest [utf8.UTFMax]byte
	n    int
}

func (s *utf8State) accept(p []byte, end bool) bool {
	for s.n > 0 && len(p) > 0 {
		s.rest[s.n] = p[0]
		s.n, p = s.n+1, p[1:]
		if utf8.FullRune(s.rest[:s.n]) {
			if r, size := utf8.DecodeRune(s.rest[:s.n]); r == utf8.RuneError && size == 1 {
				return false
			}
			s.n = 0
		}
	}
	for i := max(0, len(p)-utf8.UTFMax+1); i < len(p); i++ {
		if utf8.RuneStart(p[i]) && !utf8.FullRune(p[i:]) {
			s.n = copy(s.rest[:], p[i:])
			p = p[:i]
			break
		}
	}
	if !utf8.Valid(p) {
		return false
	}
	if end && s.n > 0 {
		s.n = 0
		return false
	}
	return true
}
