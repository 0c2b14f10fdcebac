package uplink

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// protocol is the ALPN name of an uplink.
const protocol = "aileron-uplink/1"

// PeerError is returned for a peer that has another key than the one that the session's key determines.
type PeerError struct {
	Want        string // the role that it does not have
	Fingerprint string // of its public key, SHA-256 in hexadecimal
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("the certificate is not that of this session's %s: its public key is sha256:%s",
		e.Want, e.Fingerprint)
}

// config returns the TLS configuration of a role, for either side of a connection. No authority is involved but the
// peer's own key, which both sides derive. A stolen certificate does not help, because TLS 1.3 has each side sign the
// handshake.
func (k Key) config(own role) (*tls.Config, error) {
	pair, err := k.pair(own)
	if err != nil {
		return nil, err
	}
	der, err := certificate(own, pair, own.host())
	if err != nil {
		return nil, err
	}
	peer := !own
	theirs, err := k.pair(peer)
	if err != nil {
		return nil, err
	}
	// The one that the peer shows is signed by the same key. crypto/x509 takes one with the same names for the same.
	root, err := certificate(peer, theirs)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(root)
	if err != nil {
		return nil, err
	}
	pin := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: pair}},
		RootCAs:      roots, ServerName: peer.host(),
		ClientAuth:             tls.RequireAnyClientCert, // VerifyConnection knows the only one
		SessionTicketsDisabled: true,
		VerifyConnection:       func(cs tls.ConnectionState) error { return verify(cs, pin, peer) },
	}, nil
}

// host is the name in the certificate of a role.
func (r role) host() string { return r.String() + ".uplink.aileron.internal" }

// certificate returns a certificate of a role that its own key signs. It has no end, and does not depend on clocks that
// agree: the key is that of one session.
func certificate(r role, pair ed25519.PrivateKey, hosts ...string) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "aileron " + r.String()}, DNSNames: hosts,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:  time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280 section 4.1.2.5: none
		IsCA:      true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pair.Public(), pair)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the %s: %w", r, err)
	}
	return der, nil
}

// verify accepts the peer whose public key has the hash pin.
func verify(cs tls.ConnectionState, pin [sha256.Size]byte, peer role) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("it has no certificate")
	}
	got := sha256.Sum256(cs.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if subtle.ConstantTimeCompare(got[:], pin[:]) != 1 {
		return &PeerError{Want: peer.String(), Fingerprint: hex.EncodeToString(got[:])}
	}
	if cs.NegotiatedProtocol != protocol {
		return errors.New("it does not speak " + protocol)
	}
	return nil
}

// refusal returns why a handshake failed, as a log has it.
func refusal(err error) string {
	var other *PeerError
	var unknown *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown) && len(unknown.UnverifiedCertificates) > 0:
		got := sha256.Sum256(unknown.UnverifiedCertificates[0].RawSubjectPublicKeyInfo)
		return (&PeerError{Want: relayRole.String(), Fingerprint: hex.EncodeToString(got[:])}).Error()
	case errors.As(err, &other):
		return other.Error()
	case errors.As(err, &record):
		return "it does not speak TLS"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "it has no certificate"
	case strings.Contains(err.Error(), "unsupported application protocols"):
		return "it does not speak " + protocol
	case strings.Contains(err.Error(), "unsupported versions"):
		return "it speaks no TLS 1.3"
	}
	const most = 200 // it may quote what the client sent
	return err.Error()[:min(len(err.Error()), most)]
}
