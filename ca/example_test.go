package ca_test

import (
	"crypto/x509"
	"fmt"
	"log"

	"github.com/ALRubinger/aileron/ca"
)

func Example() {
	session, err := ca.NewSession(ca.Options{Session: "01EXAMPLE"})
	if err != nil {
		log.Fatal(err)
	}
	leaf, err := session.Leaf("api.example")
	if err != nil {
		log.Fatal(err)
	}

	// A client that trusts the root accepts the leaf with the chain that it gets.
	roots, chain := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(session.RootPEM())
	for _, der := range leaf.Certificate[1:] {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			log.Fatal(err)
		}
		chain.AddCert(certificate)
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "api.example", Roots: roots, Intermediates: chain})
	fmt.Println(err)
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "other.example", Roots: roots, Intermediates: chain})
	fmt.Println(err)
	fmt.Println(session)
	// Output:
	// <nil>
	// x509: certificate is valid for api.example, not other.example
	// CN=Aileron session intermediate 01EXAMPLE,O=Aileron
}
