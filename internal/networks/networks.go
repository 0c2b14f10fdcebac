// Package networks turns what config.toml and the flags of a command say of the network into the settings of the way
// upstream: [Options].
package networks

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy/address"
	"github.com/ALRubinger/aileron/proxy/upstream"
)

// Flags are the flags of a command. The zero value leaves all to config.toml.
type Flags struct {
	Resolve []string // --resolve
	CA      string   // --upstream-ca
	Proxy   string   // --upstream-proxy
}

// Options merges flags and config into the settings of the way upstream. Flags come first, so that they win where both
// pin the same host.
func Options(c config.Config, o Flags) (upstream.Options, error) {
	up := upstream.Options{
		Dial:           time.Duration(c.Limits.DialTimeout),
		ResponseHeader: time.Duration(c.Limits.ResponseHeaderTimeout),
		Idle:           time.Duration(c.Limits.UpstreamIdleTimeout),
	}
	pins := map[string]netip.AddrPort{}
	for _, entry := range append(append([]string{}, c.Upstream.Resolve...), o.Resolve...) {
		at, to, err := ParseResolve(entry)
		if err != nil {
			return up, err
		}
		pins[at] = to
	}
	up.Resolve = pins
	for _, text := range c.Upstream.AllowRanges {
		p, err := address.ParseRange(text)
		if err != nil {
			return up, hint.New(fmt.Errorf("read config.toml: upstream.allow_ranges has %q: %w", text, err),
				"docs/networks.md lists the ranges that may be allowed; --resolve allows one address")
		}
		up.Ranges = append(up.Ranges, p)
	}
	ca := cmp.Or(o.CA, c.Upstream.CA)
	if ca != "" {
		pem, err := ReadBounded(ca, 16<<20)
		if err != nil {
			return up, hint.New(fmt.Errorf("read the upstream roots: %w", err), "--upstream-ca names a PEM file")
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return up, hint.New(fmt.Errorf("read the upstream roots: %s holds no PEM certificate", ca),
				"--upstream-ca names a PEM file")
		}
		up.Roots = roots
	}
	if raw := cmp.Or(o.Proxy, c.Upstream.Proxy); raw != "" {
		u, err := url.Parse(raw)
		if err == nil {
			err = upstream.CheckProxy(u)
		}
		if err != nil { // not quoted: it may hold a password
			return up, failure.Usagef("--upstream-proxy is not an http://, https://, socks5:// or socks5h:// URL of HOST:PORT")
		}
		for _, host := range c.Upstream.NoProxy {
			if _, err := netip.ParsePrefix(host); host == "" || strings.ContainsAny(host, ", ") ||
				strings.Contains(host, "/") && err != nil {
				return up, hint.New(fmt.Errorf("read config.toml: upstream.no_proxy has %q", host),
					"an entry is a name such as .corp.example, an address or a range such as 10.0.0.0/8, with :PORT or without")
			}
		}
		up.Proxy, up.NoProxy = u, c.Upstream.NoProxy
	} else {
		up.UnusedProxy = config.HostProxy()
	}
	return up, nil
}

// ParseResolve reads curl's HOST:PORT:ADDR, where ADDR is an IP, bracketed
// or not, or IP:PORT.
func ParseResolve(s string) (string, netip.AddrPort, error) {
	bad := failure.Usagef("--resolve is %q; it must be HOST:PORT:ADDR, with an IP or IP:PORT as ADDR", s)
	parts := strings.SplitN(s, ":", 3)
	if len(parts) != 3 {
		return "", netip.AddrPort{}, bad
	}
	a, err := hostport.Parse(parts[0]+":"+parts[1], 0)
	if err != nil {
		return "", netip.AddrPort{}, bad
	}
	to, err := netip.ParseAddrPort(parts[2])
	if err != nil {
		addr, err := netip.ParseAddr(strings.Trim(parts[2], "[]"))
		if err != nil {
			return "", netip.AddrPort{}, bad
		}
		to = netip.AddrPortFrom(addr, a.Port)
	}
	return a.String(), to, nil
}

// ReadBounded reads a file, which may be a pipe, of at most most bytes.
func ReadBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("read %s: it is larger than %d bytes", path, most)
	}
	return data, err
}
