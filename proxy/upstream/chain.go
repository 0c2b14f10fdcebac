package upstream

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// errWeakChain names the rule and not the chain: what a host presents goes into no
// denial.
var errWeakChain = errors.New("verify upstream: every chain has a weak key or signature")

// verifyStrength rejects a connection unless one of its verified chains is
// strong from the leaf to the root. It is called for resumed sessions too.
func verifyStrength(state tls.ConnectionState) error {
	for _, chain := range state.VerifiedChains {
		if isStrong(chain) {
			return nil
		}
	}
	return errWeakChain
}

// isStrong reports whether every key of a chain and every signature in it is
// fit for use. The root's own signature proves nothing and is not checked: old
// roots in use today signed themselves with SHA-1.
func isStrong(chain []*x509.Certificate) bool {
	for i, c := range chain {
		if !isStrongKey(c.PublicKey) || i < len(chain)-1 && !isStrongSignature(c.SignatureAlgorithm) {
			return false
		}
	}
	return len(chain) > 0
}

const minRSABits = 2048

func isStrongKey(key any) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize >= 256
	case ed25519.PublicKey:
		return true
	}
	return false // DSA, and what is not known
}

func isStrongSignature(a x509.SignatureAlgorithm) bool {
	switch a {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519:
		return true
	}
	return false
}
