package upstream

import (
	"errors"
	"net/http"
	"sync"
)

// alpnCache remembers which versions of HTTP hosts speak. The zero value is
// empty.
type alpnCache struct {
	mu       sync.Mutex
	versions map[string]version // by "host:port"
}

// version is what is known of a host. The zero value is nothing.
type version int

const (
	choseH1 version = iota + 1 // it chose HTTP/1.1
	choseH2                    // it chose HTTP/2
	onlyH2                     // it ended a handshake that offered nothing else
)

// maxVersions bounds an alpnCache.
const maxVersions = 4096

// useH2 reports whether r travels over HTTP/2 if its host agrees: its client
// speaks HTTP/2 and the host is not known to speak only HTTP/1.1, or the host
// speaks nothing else. A client of HTTP/1.1 gets HTTP/1.1 otherwise, which
// moves bodies faster.
func (a *alpnCache) useH2(r *http.Request, clientH2 bool) bool {
	if r.URL.Scheme != "https" || r.Header["Upgrade"] != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.versions[r.URL.Host]
	return known == onlyH2 || clientH2 && known != choseH1
}

// remember keeps what a handshake with host has shown.
func (a *alpnCache) remember(host string, v version) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.versions == nil || len(a.versions) >= maxVersions {
		a.versions = map[string]version{}
	}
	if v == choseH2 && a.versions[host] == onlyH2 {
		return
	}
	a.versions[host] = v
}

// rememberFailure reports whether a failed attempt, of which nothing was sent,
// showed that the host wants the other version of HTTP.
func (a *alpnCache) rememberFailure(host string, err error, h2 bool) bool {
	switch {
	case errors.Is(err, errChoseH1):
		a.remember(host, choseH1)
	case !h2 && isRemoteAlert(err, noApplicationProtocol):
		a.remember(host, onlyH2)
	default:
		return false
	}
	return true
}
