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

// isCommand reports whether a client is a connector's command, by what it accepts and sends. Those send no token in
// Authorization: BusyBox's wget would have it in the arguments of its process, which every user of the host may read.
// Where the listener is sealed none is needed, as for the same request to the proxy; elsewhere it is that of a proxy. A
// web page cannot send such a Content-Type, and a client that follows a link sends no such Accept.
func isCommand(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" &&
		(accept == "application/vnd.aileron.shim.v1" || accept == "application/vnd.aileron.shim.v1+json")
}
