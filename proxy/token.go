package proxy

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
)

// hasProxyToken reports whether a request has this session's token in
// Proxy-Authorization: Basic with any user, or Bearer.
func (p *Plane) hasProxyToken(r *http.Request) bool {
	fields := r.Header["Proxy-Authorization"]
	if len(fields) != 1 {
		return false
	}
	scheme, value, _ := strings.Cut(fields[0], " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer":
		return p.isToken(value)
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return false
		}
		_, password, found := strings.Cut(string(raw), ":")
		return found && p.isToken(password)
	}
	return false
}

func (p *Plane) isToken(s string) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(p.cfg.Token)) == 1
}
