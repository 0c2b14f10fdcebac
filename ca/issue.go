package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 5280 section 4.2.1.2 derives key identifiers with it
	"crypto/x509"
	"fmt"
	"math/big"
	"time"
)

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
