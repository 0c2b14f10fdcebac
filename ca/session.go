// Package ca is the certificate authority of one session: a root that only
// anchors trust, an intermediate that signs, and leaves made on demand.
//
// Keys live in memory and nowhere else. The root's is thrown away as soon as
// it has signed the intermediate, so that nothing can ever sign beside it.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 5280 section 4.2.1.2 derives key identifiers with it
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options make a session's CA. The zero value works.
type Options struct {
	Session  string           // stands in the subject, for a person who looks
	Now      func() time.Time // nil: time.Now
	Lifetime time.Duration    // 0: 24 hours
	// PermittedNames constrain the intermediate to these DNS names and what
	// is below them (RFC 5280 section 4.2.1.10). Empty: no constraint.
	PermittedNames []string
}

// Session signs leaves for one session. Its methods are safe for concurrent
// use. It prints as its subject only.
type Session struct {
	now          func() time.Time
	root         *x509.Certificate
	intermediate *x509.Certificate
	signer       *ecdsa.PrivateKey
	leafKey      *ecdsa.PrivateKey // one for all leaves: they end in one process

	minting singleflight.Group
	mu      sync.Mutex
	leaves  map[string]*cached
	tick    uint64
}

type cached struct {
	cert *tls.Certificate
	used uint64
}

const (
	maxLeaves   = 1000
	maxLifetime = 24 * time.Hour
	// leafMargin is how long before its end a leaf is made anew.
	leafMargin = 10 * time.Minute
)

// Errors of [Session.Leaf] when the clock is outside the CA's lifetime.
var (
	ErrExpired   = errors.New("the session's CA has expired; start a new session")
	ErrClockBack = errors.New("the clock was set back to before the session's CA; set it right, or start a new session")
)

// NewSession makes a root, an intermediate, and forgets the root's key.
func NewSession(o Options) (*Session, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lifetime == 0 {
		o.Lifetime = maxLifetime
	}
	s := &Session{now: o.Now, leaves: map[string]*cached{}}
	rootKey, err := newKey()
	if err != nil {
		return nil, err
	}
	if s.signer, err = newKey(); err != nil {
		return nil, err
	}
	if s.leafKey, err = newKey(); err != nil {
		return nil, err
	}
	from, err := backdated(o.Now())
	if err != nil {
		return nil, err
	}
	until := o.Now().Add(o.Lifetime)
	name := func(what string) pkix.Name {
		return pkix.Name{Organization: []string{"Aileron"}, CommonName: "Aileron " + what + " " + shortened(o.Session)}
	}
	// A template is parsed back before it signs: an unparsed parent has no
	// key identifier, and leaves without one fail in strict clients.
	if s.root, err = issue(&x509.Certificate{Subject: name("session root"), NotBefore: from, NotAfter: until, IsCA: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, MaxPathLen: 1}, nil, rootKey, rootKey); err != nil {
		return nil, err
	}
	// The extended key usage limits what the intermediate can vouch for.
	if s.intermediate, err = issue(&x509.Certificate{Subject: name("session intermediate"), NotBefore: from, NotAfter: until, IsCA: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, MaxPathLenZero: true,
		ExtKeyUsage:         []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomains: o.PermittedNames, PermittedDNSDomainsCritical: len(o.PermittedNames) > 0}, s.root, s.signer, rootKey); err != nil {
		return nil, err
	}
	return s, nil
}

func shortened(id string) string { return id[:min(len(id), 26)] }

func newKey() (*ecdsa.PrivateKey, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// backdated is 15 to 60 minutes ago: clocks in boxes differ.
func backdated(now time.Time) (time.Time, error) {
	extra, err := rand.Int(rand.Reader, big.NewInt(45*60))
	if err != nil {
		return now, fmt.Errorf("read randomness: %w", err)
	}
	return now.Add(-15*time.Minute - time.Duration(extra.Int64())*time.Second), nil
}

// issue signs template for key with the parent's, itself when parent is nil,
// and gives it parsed.
func issue(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("read randomness: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	if template.IsCA {
		template.BasicConstraintsValid = true
		point, err := key.PublicKey.ECDH()
		if err != nil {
			return nil, fmt.Errorf("encode a key: %w", err)
		}
		id := sha1.Sum(point.Bytes()) //nolint:gosec // an identifier, see the import
		template.SubjectKeyId = id[:]
	}
	if parent == nil {
		parent = template
		template.AuthorityKeyId = template.SubjectKeyId
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse a certificate: %w", err)
	}
	return cert, nil
}

// Root is the trust anchor.
func (s *Session) Root() *x509.Certificate { return s.root }

// RootPEM is the trust anchor as PEM, ending in a newline.
func (s *Session) RootPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.root.Raw})
}

// String tells which session's CA this is.
func (s *Session) String() string { return s.intermediate.Subject.String() }

// Leaf gives a certificate for a DNS name or an address, with its chain but
// without the root. It is made once, kept for the next time, and made anew
// near its end.
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
	return c.(*tls.Certificate), nil // the function above gives nothing else
}

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

// fits reports whether a leaf is valid now and for a while. One that was made
// before the clock was set back may not be valid yet.
func (s *Session) fits(leaf *x509.Certificate) bool {
	now := s.now()
	left := leaf.NotAfter.Sub(now)
	return left > 0 && !now.Before(leaf.NotBefore) && (left >= leafMargin || leaf.NotAfter.Equal(s.intermediate.NotAfter))
}

// keep stores a leaf; the one that was longest unused makes way.
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
	until := now.Add(maxLifetime)
	if until.After(s.intermediate.NotAfter) {
		until = s.intermediate.NotAfter
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
	leaf, err := issue(template, s.intermediate, s.leafKey, s.signer)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, s.intermediate.Raw}, PrivateKey: s.leafKey, Leaf: leaf}, nil
}
