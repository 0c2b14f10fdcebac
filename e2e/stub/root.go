package stub

import (
	"cmp"
	"crypto/tls"

	"github.com/ALRubinger/aileron/ca"
)

// Authority returns a new root in PEM, and the configuration of a server that has a leaf of it for each name that a
// client asks for.
func Authority() (rootPEM []byte, config *tls.Config, err error) {
	session, err := ca.NewSession(ca.Options{Session: "origin"})
	if err != nil {
		return nil, nil, err
	}
	return session.RootPEM(), &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return session.Leaf(cmp.Or(hello.ServerName, "127.0.0.1"))
		}}, nil
}
