package proxy

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// link is one certificate of a chain that a test makes.
type link struct {
	key crypto.Signer
	by  x509.SignatureAlgorithm // of its issuer, on it; 0: the usual one
}

// chainOf makes a chain from the root to the leaf, and its certificates.
func chainOf(t *testing.T, links ...link) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	var chain tls.Certificate
	var root, issuer *x509.Certificate
	var issuerKey crypto.Signer
	for i, l := range links {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: []string{"root", "between", "leaf"}[i]},
			SignatureAlgorithm: l.by,
			NotBefore:          time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			BasicConstraintsValid: true, IsCA: i < len(links)-1, DNSNames: []string{"api.good.example"},
		}
		if issuer == nil {
			issuer, issuerKey = template, l.key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, issuer, l.key.Public(), issuerKey)
		must.Do(t, err)
		issuer, err = x509.ParseCertificate(der)
		must.Do(t, err)
		if issuerKey = l.key; root == nil {
			root = issuer
			continue
		}
		chain.Certificate = append([][]byte{der}, chain.Certificate...)
		chain.PrivateKey = l.key
	}
	return chain, root
}

// patched replaces an object identifier in the last of a chain's certificates.
func patched(t *testing.T, chain tls.Certificate, from, to []byte) tls.Certificate {
	t.Helper()
	if len(from) != len(to) || !bytes.Contains(chain.Certificate[0], from) {
		t.Fatalf("%x is not in the certificate", from)
	}
	chain.Certificate = append([][]byte{bytes.ReplaceAll(chain.Certificate[0], from, to)}, chain.Certificate[1:]...)
	return chain
}

// presenting starts a world whose api.good.example presents a chain of root, and ends its
// connections with the first byte that comes. It counts these bytes.
func presenting(t *testing.T, root *x509.Certificate, cfg *tls.Config) (*world, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var sent atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var one [1]byte
				n, _ := tls.Server(conn, cfg).Read(one[:])
				sent.Add(int64(n))
			}()
		}
	}()
	w := newWorldWith(t, true, func(c *Config) {
		c.Upstream.Roots = x509.NewCertPool()
		c.Upstream.Roots.AddCert(root)
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, nil)
	return w, &sent
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, bits))(t)
	return key
}

func ecKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(curve, rand.Reader))(t)
	return key
}

func TestAWeakChainGetsNothingOnAnyWay(t *testing.T) {
	var (
		rsa1024, rsa2040, rsa2048 = rsaKey(t, 1024), rsaKey(t, 2040), rsaKey(t, 2048)
		p224, p256, p384          = ecKey(t, elliptic.P224()), ecKey(t, elliptic.P256()), ecKey(t, elliptic.P384())
		_, edwards, _             = ed25519.GenerateKey(rand.Reader)

		oidP256, oidP192  = []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 1}
		oidECKey, oidDSA  = []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1}, []byte{0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1}
		oidSHA256, oidMD5 = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 11},
			[]byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 4}
	)
	for name, c := range map[string]struct {
		links    []link
		from, to []byte // an object identifier of the leaf that is replaced
		fine     bool
	}{
		"RSA-1024 leaf":         {links: []link{{key: p256}, {key: p256}, {key: rsa1024}}},
		"RSA-2040 leaf":         {links: []link{{key: p256}, {key: p256}, {key: rsa2040}}},
		"RSA-1024 intermediate": {links: []link{{key: p256}, {key: rsa1024}, {key: p256}}},
		"RSA-1024 root":         {links: []link{{key: rsa1024}, {key: p256}, {key: p256}}},
		"P-224 intermediate":    {links: []link{{key: p256}, {key: p224}, {key: p256}}},
		"P-224 root":            {links: []link{{key: p224}, {key: p256}, {key: p256}}},
		"SHA-1 on the leaf":     {links: []link{{key: rsa2048}, {key: rsa2048}, {key: p256, by: x509.SHA1WithRSA}}},
		"SHA-1 between":         {links: []link{{key: rsa2048}, {key: rsa2048, by: x509.SHA1WithRSA}, {key: p256}}},
		"MD5 on the leaf":       {links: []link{{key: rsa2048}, {key: rsa2048}, {key: p256}}, from: oidSHA256, to: oidMD5},
		"P-192 leaf":            {links: []link{{key: rsa2048}, {key: rsa2048}, {key: p256}}, from: oidP256, to: oidP192},
		"DSA leaf":              {links: []link{{key: rsa2048}, {key: rsa2048}, {key: p256}}, from: oidECKey, to: oidDSA},
		"RSA-2048 throughout":   {links: []link{{key: rsa2048}, {key: rsa2048}, {key: rsa2048}}, fine: true},
		"P-384 and P-256":       {links: []link{{key: p384}, {key: p384}, {key: p256}}, fine: true},
		"Ed25519":               {links: []link{{key: edwards}, {key: edwards}, {key: edwards}}, fine: true},
		"SHA-1 on the root": {links: []link{{key: rsa2048, by: x509.SHA1WithRSA}, {key: rsa2048}, {key: p256}},
			fine: true},
	} {
		t.Run(name, func(t *testing.T) {
			chain, root := chainOf(t, c.links...)
			if c.from != nil {
				chain = patched(t, chain, c.from, c.to)
			}
			for _, alpn := range []string{"http/1.1", "h2"} {
				w, sent := presenting(t, root, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{chain},
					NextProtos: []string{alpn}})
				for way, ask := range upstreamWays {
					status, body := ask(w)
					_, why := reason(t, body)
					if c.fine {
						if why == ReasonTLSUpstream {
							t.Errorf("%s, %s: %d %s", way, alpn, status, body)
						}
						break
					}
					if status != 403 || why != ReasonTLSUpstream || w.last().Event != audit.EventProxyRejected ||
						Reason(w.last().Reason) != ReasonTLSUpstream {
						t.Errorf("%s, %s: %d %s", way, alpn, status, body)
					}
					if bytes.Contains([]byte(body), []byte("x509")) {
						t.Errorf("%s: the denial quotes: %s", way, body)
					}
				}
				if c.fine {
					w.eventually(func() bool { return sent.Load() > 0 })
				} else if sent.Load() > 0 {
					t.Errorf("%s: the origin got %d bytes", alpn, sent.Load())
				}
			}
		})
	}
}
