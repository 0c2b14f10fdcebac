package recipes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// OwnRoot is what only the Java of the kinds "jdk" and "javas" trusts.
const OwnRoot = "Root of an image's own Java"

// cacerts is a trust store as JDKs from 18 on have it: no password. It lives
// as long as the images that it is in.
func cacerts() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: OwnRoot},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().AddDate(100, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return pkcs12.Passwordless.EncodeTrustStore([]*x509.Certificate{cert}, "")
}
