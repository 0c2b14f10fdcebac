package attacks

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/elazarl/goproxy"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// cas: the session's certificate authority.
func cas() category {
	return category{name: "CA", cases: []attack{
		{id: "CA-01", does: "a leaf is for one host, for servers, and as strict clients want it", run: func(c *testCase) {
			chain := c.presented("api.good.test")
			leaf, issuer := chain[0], chain[1]
			if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "api.good.test" ||
				len(leaf.IPAddresses)+len(leaf.EmailAddresses)+len(leaf.URIs) != 0 {
				c.failf("the leaf is for %v %v", leaf.DNSNames, leaf.IPAddresses)
			}
			if leaf.IsCA || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth ||
				leaf.KeyUsage != x509.KeyUsageDigitalSignature {
				c.failf("the leaf may do more: %v %v %v", leaf.IsCA, leaf.ExtKeyUsage, leaf.KeyUsage)
			}
			if len(leaf.AuthorityKeyId) == 0 || !bytes.Equal(leaf.AuthorityKeyId, issuer.SubjectKeyId) {
				c.failf("the leaf does not name its issuer's key")
			}
			if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() ||
				leaf.SignatureAlgorithm != x509.ECDSAWithSHA256 {
				c.failf("the leaf is of %T, signed with %v", leaf.PublicKey, leaf.SignatureAlgorithm)
			}
			if leaf.NotAfter.After(issuer.NotAfter) || leaf.NotBefore.Before(issuer.NotBefore) ||
				time.Since(leaf.NotBefore) < 14*time.Minute {
				c.failf("the leaf is valid from %v to %v", leaf.NotBefore, leaf.NotAfter)
			}
			serials := map[string]bool{}
			for i := range 300 {
				made, err := c.s.plane.ca.Leaf(fmt.Sprintf("n%d.good.test", i))
				c.must(err)
				serial := made.Leaf.SerialNumber
				if serials[serial.String()] || serial.Sign() <= 0 || serial.BitLen() < 64 || len(serial.Bytes()) > 20 {
					c.failf("the serial %v", serial)
				}
				serials[serial.String()] = true
			}
		}},
		{id: "CA-02", does: "the signing CA signs leaves only, for as long as a day, under a root without a key",
			run: func(c *testCase) {
				chain := c.presented("api.good.test")
				if len(chain) != 2 {
					c.failf("%d certificates were sent, not the leaf and its issuer", len(chain))
					return
				}
				signer, root := chain[1], c.s.plane.ca.Root()
				for what, cert := range map[string]*x509.Certificate{"the signing CA": signer, "the root": root} {
					if !cert.IsCA || !cert.BasicConstraintsValid || cert.KeyUsage&x509.KeyUsageCertSign == 0 ||
						len(cert.SubjectKeyId) == 0 {
						c.failf("%s: %v %v %x", what, cert.IsCA, cert.KeyUsage, cert.SubjectKeyId)
					}
					if cert.NotAfter.Sub(cert.NotBefore) > 25*time.Hour+time.Minute {
						c.failf("%s is valid for %v", what, cert.NotAfter.Sub(cert.NotBefore))
					}
				}
				if signer.MaxPathLen != 0 || !signer.MaxPathLenZero {
					c.failf("the signing CA may have issuers below it")
				}
				other, err := ca.NewSession(ca.Options{Session: "another"})
				c.must(err)
				if root.Subject.CommonName == other.Root().Subject.CommonName ||
					root.Subject.CommonName == chain[0].Subject.CommonName {
					c.failf("the root's name %q is not its own", root.Subject.CommonName)
				}
			}},
		{id: "CA-03", does: "every TLS stack of this machine takes the session's leaf with its CA, strictly too, and " +
			"refuses it without", run: casClients},
		{id: "CA-04", does: "what strict clients refuse is refused still", run: func(c *testCase) {
			bad := func(change func(*x509.Certificate)) *x509.Certificate {
				t := honest(victim)
				change(t)
				return t
			}
			for name, leaf := range map[string]*x509.Certificate{
				"no names":   bad(func(l *x509.Certificate) { l.DNSNames = nil }),
				"of clients": bad(func(l *x509.Certificate) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
				"expired":    bad(func(l *x509.Certificate) { l.NotAfter = time.Now().Add(-time.Second) }),
				"not yet":    bad(func(l *x509.Certificate) { l.NotBefore = time.Now().Add(time.Hour) }),
			} {
				cert, _, err := sign(leaf, on.roots.cert, on.roots.key)
				c.must(err)
				roots := x509.NewCertPool()
				roots.AddCert(on.roots.cert)
				if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: victim}); err == nil {
					c.failf("Go takes a leaf %s", name)
				}
			}
			if !harness.Has(c.t, "openssl") {
				c.t.Log("openssl is not here to be asked")
				return
			}
			unnamed, _, err := sign(&x509.Certificate{Subject: pkix.Name{CommonName: "same"}, DNSNames: []string{victim}},
				on.roots.cert, on.roots.key)
			c.must(err)
			if c.openssl(on.roots.cert, nil, unnamed, victim) != nil {
				c.failf("the harness's own leaf does not verify: what follows proves nothing")
			}
			chain := c.presented(victim)
			if err := c.openssl(c.s.plane.ca.Root(), chain[1:], chain[0], victim); err != nil {
				c.failf("openssl in its strict mode refuses the session's leaf: %v", err)
			}
		}},
		{id: "CA-05", does: "a constrained CA's stolen key signs for no other host", run: func(c *testCase) {
			stolen, err := ca.NewSession(ca.Options{Session: "constrained", PermittedNames: []string{"api.good.test"}})
			c.must(err)
			roots := x509.NewCertPool()
			roots.AddCert(stolen.Root())
			for host, good := range map[string]bool{"api.good.test": true, "evil.test": false, "api.good.test.evil.test": false,
				"good.test": false} {
				made, err := stolen.Leaf(host)
				c.must(err)
				signer, err := x509.ParseCertificate(made.Certificate[1])
				c.must(err)
				between := x509.NewCertPool()
				between.AddCert(signer)
				if _, err := made.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between,
					DNSName: host}); (err == nil) != good {
					c.failf("Go on %s: %v", host, err)
				}
				if harness.Has(c.t, "openssl") {
					if err := c.openssl(stolen.Root(), []*x509.Certificate{signer}, made.Leaf, host); (err == nil) != good {
						c.failf("openssl on %s: %v", host, err)
					}
				}
			}
		}},
		{id: "CA-07", does: "a killed session leaves no key, and nothing that others may read", run: casKilled},
		{id: "CA-08", does: "every session has its own CA, and none has goproxy's", run: func(c *testCase) {
			other := newWorld(c.t, fixture{})
			defer other.stop()
			mine := c.presented("api.good.test")
			if bytes.Equal(c.s.plane.ca.Root().RawSubjectPublicKeyInfo, other.ca.Root().RawSubjectPublicKeyInfo) {
				c.failf("two sessions have one key")
			}
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			c.rows++
			if _, err := c.secure(l, &tls.Config{ServerName: "api.good.test", RootCAs: other.roots}); err == nil {
				c.failf("who trusts another session trusts this one")
			}
			_ = l.Close()
			for _, cert := range mine {
				if shared := goproxy.GoproxyCa.Leaf; shared != nil && bytes.Equal(cert.RawIssuer, shared.RawSubject) {
					c.failf("goproxy's own CA signed %v", cert.Subject)
				}
			}
		}},
		{id: "CA-10", does: "clocks that are some minutes wrong are no matter", run: func(c *testCase) {
			for off, good := range map[time.Duration]bool{-10 * time.Minute: true, 10 * time.Minute: true,
				-25 * time.Hour: false, 25 * time.Hour: false} {
				c.each(off.String(), func(c *testCase) {
					l, a := c.connect("api.good.test")
					c.is("CONNECT", a, 200)
					c.rows++
					in, err := c.secure(l, &tls.Config{ServerName: "api.good.test",
						Time: func() time.Time { return time.Now().Add(off) }})
					if (err == nil) != good {
						c.failf("the client says %v", err)
					}
					if err == nil {
						c.is("the request", c.say(in, head("GET", "api.good.test", "/v1/items"), "GET")[0], 200)
					}
					_ = l.Close()
				})
			}
		}},
		{id: "CA-11", does: "hosts that are longer than a common name may be", run: func(c *testCase) {
			label := strings.Repeat("a", 60)
			for _, host := range []string{label + "." + label[:30] + ".good.test",
				strings.Join([]string{label, label, label, label[:58], "test"}, "."), strings.Repeat("a.", 122) + "good.test"} {
				c.each(fmt.Sprint(len(host)), func(c *testCase) {
					leaf := c.presented(host)[0]
					if leaf.Subject.CommonName != "" && len(leaf.Subject.CommonName) > 64 {
						c.failf("the common name has %d characters", len(leaf.Subject.CommonName))
					}
					for _, e := range leaf.Extensions {
						if e.Id.String() == "2.5.29.17" && e.Critical != (leaf.Subject.CommonName == "") {
							c.failf("a leaf without a subject has names that are not critical")
						}
					}
					c.refused("the request", c.get(host, "/"), hostNotAllowed)
				})
			}
		}},
		{id: "CA-13", does: "a leaf's key is not the CA's, nor another session's", run: func(c *testCase) {
			one, two := c.presented("api.good.test"), c.presented("key.good.test")
			other := newWorld(c.t, fixture{})
			defer other.stop()
			foreign, err := other.ca.Leaf("api.good.test")
			c.must(err)
			for _, issuer := range []*x509.Certificate{one[1], c.s.plane.ca.Root()} {
				if bytes.Equal(one[0].RawSubjectPublicKeyInfo, issuer.RawSubjectPublicKeyInfo) {
					c.failf("the leaf has the key of %v", issuer.Subject)
				}
			}
			if bytes.Equal(one[0].RawSubjectPublicKeyInfo, foreign.Leaf.RawSubjectPublicKeyInfo) ||
				bytes.Equal(two[0].RawSubjectPublicKeyInfo, foreign.Leaf.RawSubjectPublicKeyInfo) {
				c.failf("two sessions have one leaf key")
			}
		}},
	}}
}

// presented is the chain that the plane shows for a host.
func (c *testCase) presented(host string) []*x509.Certificate {
	l, a := c.connect(host)
	c.is("CONNECT", a, 200)
	in, err := c.secure(l, &tls.Config{ServerName: host})
	c.must(err)
	defer in.Close()
	return in.Conn.(*tls.Conn).ConnectionState().PeerCertificates
}

// openssl asks its strict verifier about a chain.
func (c *testCase) openssl(root *x509.Certificate, between []*x509.Certificate, leaf *x509.Certificate,
	host string) error {
	file := func(name string, certs ...*x509.Certificate) string {
		var text []byte
		for _, cert := range certs {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		}
		path := filepath.Join(on.dir, name)
		c.must(os.WriteFile(path, text, 0o600))
		return path
	}
	args := []string{"verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", host, "-CAfile",
		file("root.pem", root)}
	if len(between) > 0 {
		args = append(args, "-untrusted", file("between.pem", between...))
	}
	if out, err := exec.Command("openssl", append(args, file("leaf.pem", leaf))...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// casKilled kills the program and looks at what it leaves.
func casKilled(c *testCase) {
	p := newPerson(c.t)
	p.mask = true
	p.bind("api")
	s := p.start()
	s.on(c, "before", func(c *testCase) { c.is("the request", c.get("api.good.test", "/v1/items"), 200) })
	s.kill()
	c.must(filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		// which is there to be read
		if info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSocket == 0 && filepath.Base(path) != "ca.pem" {
			c.failf("others may use %s: %v", filepath.Base(path), info.Mode())
		}
		if d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			if bytes.Contains(text, []byte("PRIVATE KEY")) {
				c.failf("%s holds a private key", filepath.Base(path))
			}
		}
		return nil
	}))
}
