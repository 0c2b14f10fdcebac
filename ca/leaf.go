package ca

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/netip"
	"time"
)

const (
	maxLeaves   = 1000
	maxLifetime = 24 * time.Hour
	// leafMargin is the time before its end at which a leaf is replaced.
	leafMargin = 10 * time.Minute
)

// The errors of [Session.Leaf] while the clock is outside the CA's lifetime.
var (
	ErrExpired   = errors.New("the session's CA has expired; start a new session")
	ErrClockBack = errors.New("the clock was set back to before the session's CA; set it right, or start a new session")
)

// cached is a leaf that is kept.
type cached struct {
	cert *tls.Certificate
	used uint64 // by Session.tick
}

// Leaf returns a certificate for a DNS name or an address, with its chain but without
// the root. It creates the certificate once, keeps it, and replaces it near its end.
func (s *Session) Leaf(host string) (*tls.Certificate, error) {
	if c := s.known(host); c != nil {
		return c, nil
	}
	c, err, _ := s.minting.Do(host, func() (any, error) {
		if c := s.known(host); c != nil {
			return c, nil
		}
		c, err := s.mint(host)
		if err == nil {
			s.keep(host, c)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return c.(*tls.Certificate), nil // the function above returns nothing else
}

// known returns the leaf that is kept for host, or nil.
func (s *Session) known(host string) *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.leaves[host]
	if c == nil {
		return nil
	}
	if !s.fits(c.cert.Leaf) {
		delete(s.leaves, host)
		return nil
	}
	s.tick++
	c.used = s.tick
	return c.cert
}

// fits reports whether a leaf is valid now and for some time. A leaf that was created
// before the clock was set back may not be valid yet.
func (s *Session) fits(leaf *x509.Certificate) bool {
	now := s.now()
	left := leaf.NotAfter.Sub(now)
	return left > 0 && !now.Before(leaf.NotBefore) && (left >= leafMargin || leaf.NotAfter.Equal(s.intermediate.NotAfter))
}

// keep stores a leaf. If there are too many, it drops the least recently used one.
func (s *Session) keep(host string, c *tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leaves) >= maxLeaves {
		oldest, at := "", uint64(0)
		for h, c := range s.leaves {
			if oldest == "" || c.used < at {
				oldest, at = h, c.used
			}
		}
		delete(s.leaves, oldest)
	}
	s.tick++
	s.leaves[host] = &cached{cert: c, used: s.tick}
}

// mint returns a new leaf for host.
func (s *Session) mint(host string) (*tls.Certificate, error) {
	now := s.now()
	if !now.Before(s.intermediate.NotAfter) {
		return nil, ErrExpired
	}
	if now.Before(s.intermediate.NotBefore) {
		return nil, ErrClockBack
	}
	from, err := backdated(now)
	if err != nil {
		return nil, err
	}
	if from.Before(s.intermediate.NotBefore) {
		from = s.intermediate.NotBefore
	}
	chain := s.chainFor(host, now)
	until := now.Add(maxLifetime)
	if until.After(chain.issuer.NotAfter) {
		until = chain.issuer.NotAfter
	}
	template := &x509.Certificate{NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
	} else {
		template.DNSNames = []string{host}
	}
	if len(host) <= 64 { // the bound of a common name; without one the SAN is critical
		template.Subject = pkix.Name{CommonName: host}
	}
	leaf, err := issue(template, chain.issuer, s.leafKey, chain.signer)
	if err != nil {
		return nil, err
	}
	sent := append([][]byte{leaf.Raw}, chain.sent...)
	return &tls.Certificate{Certificate: sent, PrivateKey: s.leafKey, Leaf: leaf}, nil
}
