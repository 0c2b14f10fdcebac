package attacks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"
)

// roots is the public key infrastructure of the fixture: the only root that
// a session is given for its upstreams.
type roots struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

func newRoots() (*roots, error) {
	r := &roots{leaves: map[string]*tls.Certificate{}}
	var err error
	r.cert, r.key, err = sign(&x509.Certificate{Subject: pkix.Name{CommonName: "attacks root"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign}, nil, nil)
	return r, err
}

func (r *roots) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.cert.Raw})
}

// sign makes a certificate from template, by the parent or by itself. The
// defaults are those of an honest one.
func sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber == nil {
		if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
			return nil, nil, err
		}
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// honest is the template of a leaf that every client takes for host.
func honest(host string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

// leaf is the certificate of an honest origin.
func (r *roots) leaf(host string) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.leaves[host]; c != nil {
		return c, nil
	}
	cert, key, err := sign(honest(host), r.cert, r.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	r.leaves[host] = c
	return c, nil
}

// wide is honest for several hosts.
func wide(hosts ...string) *x509.Certificate {
	c := honest(hosts[0])
	c.DNSNames = hosts
	return c
}

// issuer signs.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (r *roots) issuer() *issuer { return &issuer{r.cert, r.key} }
