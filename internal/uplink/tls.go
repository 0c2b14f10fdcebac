package uplink

import (
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

// config returns the TLS configuration of a role, for either side of a connection. No authority and no name is
// involved: the peer is whom the pinned key belongs to. A stolen certificate does not help, because TLS 1.3 has each
// side sign the handshake.
func (k Key) config(own role) (*tls.Config, error) {
	pair, err := k.pair(own)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "aileron " + own.String()},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pair.Public(), pair)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the %s: %w", own, err)
	}
	peer := !own
	theirs, err := k.pair(peer)
	if err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(theirs.Public())
	if err != nil {
		return nil, err
	}
	pin := sha256.Sum256(spki)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: pair}},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		//nolint:gosec // VerifyConnection pins the peer's key instead
		InsecureSkipVerify: true,
		VerifyConnection:   func(cs tls.ConnectionState) error { return verify(cs, pin, peer) },
	}, nil
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
	var record tls.RecordHeaderError
	switch {
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
	text := err.Error()
	return text[:min(len(text), maxReason)] // it may quote what the client sent
}

// maxReason is how many bytes of a reason are logged.
const maxReason = 200
