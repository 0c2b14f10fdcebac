// Package ca is the certificate authority of one session.
//
// [NewSession] creates a root that only anchors trust and an intermediate that
// signs. [Session.RootPEM] is what clients must trust, and [Session.Leaf] returns a
// certificate for a host, created on demand. [Bundle], [JavaTrustStore] and
// [HashLink] put the root where clients look for roots. [Session.Host] is what
// programs outside of the session may trust instead, for some names only.
//
// Keys exist in memory only. That of the root is discarded as soon as it has signed
// the intermediate, so that nothing else can ever be signed with it.
//
// leaf.go makes and keeps the certificates of hosts, and host.go the part that this
// host may trust; trust.go begins what adds it to the stores of this host, which
// truststores.go finds.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 5280 section 4.2.1.2 derives key identifiers with it
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options are the options of [NewSession]. The zero value is useful.
type Options struct {
	Session  string           // the session's id, for people: part of the subjects
	Now      func() time.Time // nil means time.Now
	Lifetime time.Duration    // 0 means 24 hours
	// PermittedNames constrain the intermediate to these DNS names and those
	// below them (RFC 5280 section 4.2.1.10). Empty means no constraint.
	PermittedNames []string
	// HostNames are the DNS names whose leaves have a chain to a second root, too, which can vouch for these and for
	// names below them only, for 12 hours at most: [Session.Host]. Clients that trust the session's root
	// accept these leaves like any other. Empty means no second root.
	HostNames []string
}

// Session is the certificate authority of one session. Its methods are safe for
// concurrent use. Printed, it is its subject.
type Session struct {
	now          func() time.Time
	root         *x509.Certificate
	intermediate *x509.Certificate
	signer       *ecdsa.PrivateKey
	leafKey      *ecdsa.PrivateKey // one for all leaves, as all are of one process
	host         *hostCA           // nil: there is none

	minting singleflight.Group
	mu      sync.Mutex
	leaves  map[string]*cached
	tick    uint64
}

// NewSession returns a CA with a new root and a new intermediate. It discards the key
// of the root.
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
	// Each is parsed after it was signed: an unparsed parent has no key
	// identifier, and leaves without one fail in strict clients.
	s.root, err = issue(&x509.Certificate{
		Subject: subject("session root", o.Session), NotBefore: from, NotAfter: until,
		IsCA: true, MaxPathLen: o.pathLength(), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, rootKey, rootKey)
	if err != nil {
		return nil, err
	}
	s.intermediate, err = issue(&x509.Certificate{
		Subject: subject("session intermediate", o.Session), NotBefore: from, NotAfter: until,
		IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:         []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, // it signs for servers only
		PermittedDNSDomains: o.PermittedNames, PermittedDNSDomainsCritical: len(o.PermittedNames) > 0,
	}, s.root, s.signer, rootKey)
	if err != nil {
		return nil, err
	}
	if len(o.HostNames) > 0 {
		if s.host, err = newHostCA(o, s.root, rootKey); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pathLength returns how many CAs may be between the root and a leaf.
func (o Options) pathLength() int {
	if len(o.HostNames) > 0 {
		return 2 // the host CA's root and its intermediate
	}
	return 1
}

// subject returns the name of a certificate of a CA, for people.
func subject(what, session string) pkix.Name {
	session = session[:min(len(session), 26)]
	return pkix.Name{Organization: []string{"Aileron"}, CommonName: "Aileron " + what + " " + session}
}

// Root returns the trust anchor.
func (s *Session) Root() *x509.Certificate { return s.root }

// RootPEM returns the trust anchor as PEM, with a newline at its end.
func (s *Session) RootPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.root.Raw})
}

// String returns the subject of the CA.
func (s *Session) String() string { return s.intermediate.Subject.String() }

func newKey() (*ecdsa.PrivateKey, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return k, nil
}

// backdated returns a time 15 to 60 minutes ago, as clocks in sandboxes differ.
func backdated(now time.Time) (time.Time, error) {
	extra, err := rand.Int(rand.Reader, big.NewInt(45*60))
	if err != nil {
		return now, fmt.Errorf("read randomness: %w", err)
	}
	return now.Add(-15*time.Minute - time.Duration(extra.Int64())*time.Second), nil
}

// issue returns template as a certificate of key, signed by signer, which is the key
// of parent. A nil parent means that the certificate signs itself.
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
