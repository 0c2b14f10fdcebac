package main

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// sessionOptions are the flags of every verb that opens a session.
type sessionOptions struct {
	egress         string
	resolve        []string
	upstreamCA     string
	upstreamProxy  string
	binds          []string
	allow          []string
	connectors     []string
	passphraseFile string
	project        projectUse
	given          func(flag string) bool // whether a flag is on the command line; nil where no project's file is used

	opened   *vault.Vault // unlocked before the session opens; nil: it unlocks the vault itself
	quiet    bool         // no report at the end
	reported bool         // a report at the end even without a terminal
}

// registerQuiet adds the flag of the verbs that report at the end.
func (o *sessionOptions) registerQuiet(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "do not report at the end what happened in the session")
}

func (o *sessionOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.egress, "egress", "deny", "what happens to hosts that no connector names: deny or passthrough")
	f.StringArrayVar(&o.resolve, "resolve", nil, "reach HOST:PORT at ADDR, an IP or IP:PORT (repeatable)")
	f.StringVar(&o.upstreamCA, "upstream-ca", "", "PEM file of roots to trust upstream, besides the system's")
	f.StringVar(&o.upstreamProxy, "upstream-proxy", "", "http:// proxy through which upstreams are reached")
	f.StringArrayVar(&o.binds, "bind", nil, "CONNECTOR=IDENTITY: which binding of a connector to use (repeatable)")
	f.StringSliceVar(&o.allow, "allow", nil,
		"HOST[:PORT],…: allow requests to hosts that no connector names, for this session, without credentials (repeatable)")
	f.StringSliceVar(&o.connectors, "connector", nil,
		"use only these of the installed connectors: CONNECTOR[,CONNECTOR] (repeatable)")
	f.StringVar(&o.passphraseFile, "passphrase-file", "", "file that holds the vault's passphrase")
}

func (o *sessionOptions) check() error {
	if err := oneOf("egress", o.egress, "deny", "passthrough"); err != nil {
		return err
	}
	for _, host := range o.allow {
		if _, err := spec.ParseHost(host); err != nil {
			return usagef("--allow is %q; it must be HOST or HOST:PORT: %v", host, err)
		}
	}
	for _, b := range o.binds {
		if fqn, identity, ok := strings.Cut(b, "="); !ok || fqn == "" || identity == "" {
			return usagef("--bind is %q; it must be CONNECTOR=IDENTITY", b)
		}
	}
	return nil
}

// bindings returns the identities that --bind chooses, or else the project's file.
func (o *sessionOptions) bindings(a *app) (map[spec.FQN]string, error) {
	chosen, names := maps.Clone(o.project.bindings), a.connectorNames()
	if chosen == nil {
		chosen = map[spec.FQN]string{}
	}
	for _, b := range o.binds {
		name, identity, _ := strings.Cut(b, "=")
		fqn := spec.FQN(name)
		if isShortName(name) {
			var err error
			if fqn, err = names.resolve(name); err != nil {
				return nil, err
			}
		}
		chosen[fqn] = identity
	}
	return chosen, nil
}

// used returns the connectors that --connector names, or else the project's file; nil for all.
func (o *sessionOptions) used(a *app) ([]spec.FQN, error) {
	used := o.project.connectors
	if len(o.connectors) > 0 {
		used = nil
	}
	for _, name := range o.connectors {
		fqn, err := a.connectorNames().resolve(name)
		if err != nil {
			return nil, err
		}
		used = append(used, fqn)
	}
	return used, nil
}

// upstream merges flags and config into the plane's settings. Flags come
// first, so that they win where both pin the same host.
func (o *sessionOptions) upstream(c config.Config) (upstream.Options, error) {
	up := upstream.Options{
		Dial:           time.Duration(c.Limits.DialTimeout),
		ResponseHeader: time.Duration(c.Limits.ResponseHeaderTimeout),
		Idle:           time.Duration(c.Limits.UpstreamIdleTimeout),
	}
	pins := map[string]netip.AddrPort{}
	for _, entry := range append(append([]string{}, c.Upstream.Resolve...), o.resolve...) {
		at, to, err := parseResolve(entry)
		if err != nil {
			return up, err
		}
		pins[at] = to
	}
	up.Resolve = pins
	ca := cmp.Or(o.upstreamCA, c.Upstream.CA)
	if ca != "" {
		pem, err := readBounded(ca, 16<<20)
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
	if raw := cmp.Or(o.upstreamProxy, c.Upstream.Proxy); raw != "" {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" || u.Host == "" {
			return up, usagef("--upstream-proxy is not an http://HOST:PORT URL") // not quoted: it may hold a password
		}
		up.Proxy = u
	}
	return up, nil
}

// parseResolve reads curl's HOST:PORT:ADDR, where ADDR is an IP, bracketed
// or not, or IP:PORT.
func parseResolve(s string) (string, netip.AddrPort, error) {
	bad := usagef("--resolve is %q; it must be HOST:PORT:ADDR, with an IP or IP:PORT as ADDR", s)
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

// readBounded reads a file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: it is a directory", path)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("read %s: it is larger than %d bytes", path, most)
	}
	return os.ReadFile(path)
}
