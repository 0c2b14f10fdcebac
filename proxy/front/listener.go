package front

import (
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy"
)

// Listener describes who can reach a listener and what may be trusted because
// of that.
type Listener struct {
	// Sealed: only this session's own sandbox can reach the listener, so that no
	// token is required, and https:// requests in absolute form are accepted
	// (BusyBox wget sends them).
	Sealed bool
	// Redirected: the gateway opens every connection with a CONNECT of its own,
	// for a client that ignored the proxy. A bare address may then be named by the
	// client's SNI.
	Redirected bool
	// Names are names of the listener, as "host:port", beside its own address:
	// those under which a gateway or an engine makes it reachable.
	Names []string
	// Models are providers' APIs that the listener serves without a proxy.
	Models []Model
}

// isNamed reports whether host, the Host field of a request, is a name of the
// listener at which its connection arrived: its own address, on loopback the
// names of loopback too, the session's name, and Names. A web page whose own
// name resolves to this machine cannot send any of them.
func (l Listener) isNamed(host string, at net.Addr) bool {
	a, err := hostport.Parse(host, 80)
	switch {
	case err != nil:
		return false
	case a.Host == proxy.APIHost, slices.Contains(l.Names, a.String()):
		return true
	}
	local, ok := at.(*net.TCPAddr)
	if !ok || int(a.Port) != local.Port {
		return false
	}
	addr, _ := netip.AddrFromSlice(local.IP)
	addr = addr.Unmap()
	return a.Addr == addr || addr.IsLoopback() && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, a.Host)
}

// hasProxyToken reports whether a request has this session's token in
// Proxy-Authorization: Basic with any user, or Bearer.
func (f *Front) hasProxyToken(r *http.Request) bool {
	fields := r.Header["Proxy-Authorization"]
	if len(fields) != 1 {
		return false
	}
	scheme, value, _ := strings.Cut(fields[0], " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer":
		return f.isToken(value)
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return false
		}
		_, password, found := strings.Cut(string(raw), ":")
		return found && f.isToken(password)
	}
	return false
}

func (f *Front) isToken(s string) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(f.cfg.Token)) == 1
}
