package ca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// hostLifetime bounds the time for which a host may trust a session.
const hostLifetime = 12 * time.Hour

// hostCA is the part of a session's CA that programs outside of the session may trust: a root of its own, whose key is
// discarded as the session's root's is, and an intermediate that can sign for some names only. What trusts this root
// trusts no other certificate of the session.
//
// The constraints are in the intermediate, where every verifier enforces them. For those of a trust anchor, RFC 5280
// section 6.1 leaves that open; and Java 17 fails where two CAs of a path exclude addresses of both kinds.
type hostCA struct {
	root, intermediate *x509.Certificate
	signer             *ecdsa.PrivateKey
	// cross is the root, signed by the session's own: clients that trust that one accept these leaves too.
	cross *x509.Certificate
	names []string
}

// newHostCA returns the host CA for the names of the options. parent is the session's root.
func newHostCA(o Options, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*hostCA, error) {
	rootKey, err := newKey()
	if err != nil {
		return nil, err
	}
	h := &hostCA{names: slices.Clone(o.HostNames)}
	if h.signer, err = newKey(); err != nil {
		return nil, err
	}
	template := func(what string, below int) *x509.Certificate {
		return &x509.Certificate{
			Subject: subject(what, o.Session), NotBefore: parent.NotBefore,
			NotAfter: o.Now().Add(min(o.Lifetime, hostLifetime)),
			IsCA:     true, MaxPathLen: below, MaxPathLenZero: below == 0,
			KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
	}
	if h.root, err = issue(template("host root", 1), nil, rootKey, rootKey); err != nil {
		return nil, err
	}
	if h.cross, err = issue(template("host root", 1), parent, rootKey, parentKey); err != nil {
		return nil, err
	}
	intermediate := template("host intermediate", 0)
	if err := constrain(intermediate, o.HostNames); err != nil {
		return nil, err
	}
	h.intermediate, err = issue(intermediate, h.root, h.signer, rootKey)
	return h, err
}

// constrain adds name constraints to the template of a CA (RFC 5280 section 4.2.1.10). A kind of name that no subtree
// is about would be permitted whole, so every address is excluded: OpenSSL judges the common name of a leaf for a
// permitted address as a DNS name, and no constraints would suit all verifiers.
func constrain(c *x509.Certificate, names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "*/: ") || isAddress(name) {
			return fmt.Errorf("constrain the host CA: %q is no DNS name", name)
		}
	}
	c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = names, true
	for _, bits := range []int{32, 128} {
		c.ExcludedIPRanges = append(c.ExcludedIPRanges,
			&net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)})
	}
	return nil
}

// covers reports whether the host CA signs for a name at a time: the constraints permit the name, and a leaf would not
// have to be replaced at once.
func (h *hostCA) covers(host string, now time.Time) bool {
	if h == nil || h.intermediate.NotAfter.Sub(now) < leafMargin || now.Before(h.intermediate.NotBefore) {
		return false
	}
	return slices.ContainsFunc(h.names, func(name string) bool {
		return host == name || strings.HasSuffix(host, "."+name)
	})
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// HostCA describes the part of a session's CA that may be trusted outside of the session.
type HostCA struct {
	Root  *x509.Certificate
	Names []string // which its certificates can be for, and those below them
}

// PEM returns the root as PEM.
func (h *HostCA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Root.Raw})
}

// Host returns the host CA, or nil for a session without one: see [Options.HostNames].
func (s *Session) Host() *HostCA {
	if s.host == nil {
		return nil
	}
	return &HostCA{Root: s.host.root, Names: slices.Clone(s.host.names)}
}

// chain is what a leaf is signed with, and what is sent with it.
type chain struct {
	signer *ecdsa.PrivateKey
	issuer *x509.Certificate
	sent   [][]byte // after the leaf
}

// chainFor returns the chain of a host's leaf.
func (s *Session) chainFor(host string, now time.Time) chain {
	if h := s.host; h.covers(host, now) {
		return chain{h.signer, h.intermediate, [][]byte{h.intermediate.Raw, h.cross.Raw}}
	}
	return chain{s.signer, s.intermediate, [][]byte{s.intermediate.Raw}}
}
