package attacks

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/vault"
)

const victim = "api.good.test"

// utl: origins that TLS should not be spoken with.
func utl() category {
	return category{name: "UTL", unrun: map[string]string{
		"UTL-06": "run elsewhere: TestAWeakChainGetsNothingOnAnyWay in proxy, with weak roots too",
		"UTL-10": "Go does not check whether a certificate was revoked, and so the plane does not; " +
			"short-lived certificates are the answer of the web",
	}, cases: []attack{
		{id: "UTL-01", does: "a certificate that is expired, or not valid yet, or another host's", run: func(c *testCase) {
			for name, change := range map[string]func(*x509.Certificate){
				"expired": func(l *x509.Certificate) {
					l.NotBefore, l.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-time.Minute)
				},
				"not yet": func(l *x509.Certificate) {
					l.NotBefore, l.NotAfter = time.Now().Add(time.Hour), time.Now().Add(48*time.Hour)
				},
				"other host": func(l *x509.Certificate) { l.DNSNames = []string{"key.good.test"} },
				"no names":   func(l *x509.Certificate) { l.DNSNames = nil },
				"too wide":   func(l *x509.Certificate) { l.DNSNames = []string{"*.test", "*"} },
				"too deep":   func(l *x509.Certificate) { l.DNSNames = []string{"*.api.good.test"} },
			} {
				c.each(name, func(c *testCase) {
					leaf := honest(victim)
					change(leaf)
					c.refusesChain(c.chain(on.roots.issuer(), leaf))
				})
			}
		}},
		{id: "UTL-02", does: "a certificate that signed itself", run: func(c *testCase) {
			c.refusesChain(c.chain(nil, honest(victim)))
		}},
		{id: "UTL-04", does: "a chain that is strange or incomplete; one in another order is fine", run: func(c *testCase) {
			between := func() *x509.Certificate {
				return &x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true,
					KeyUsage: x509.KeyUsageCertSign}
			}
			c.each("strange root", func(c *testCase) {
				strange, err := newRoots()
				c.must(err)
				c.refusesChain(c.chain(strange.issuer(), honest(victim)))
			})
			c.each("incomplete", func(c *testCase) {
				chain := c.chain(on.roots.issuer(), between(), honest(victim))
				chain.Certificate = chain.Certificate[:1]
				c.refusesChain(chain)
			})
			c.each("another order", func(c *testCase) {
				chain := c.chain(on.roots.issuer(), between(), honest(victim))
				chain.Certificate = append(chain.Certificate[:1], on.roots.cert.Raw, chain.Certificate[1])
				c.presents(&tls.Config{Certificates: []tls.Certificate{chain}, MinVersion: tls.VersionTLS12})
				c.is("the request", c.get(victim, "/v1/items"), 200)
			})
		}},
		{id: "UTL-05", does: "a certificate of the session's own CA", run: func(c *testCase) {
			leaf, err := c.s.plane.ca.Leaf(victim)
			c.must(err)
			c.refusesChain(*leaf)
		}},
		{id: "UTL-07", does: "certificates for another use, and issuers that may not issue", run: utlChains},
		{id: "UTL-08", does: "versions and ciphers of before TLS 1.2", run: utlOld},
		{id: "UTL-11", does: "handshakes that stall, drip or are huge",
			run: utlSlow},
		{id: "UTL-13", does: "the environment cannot make the program talk", run: utlEnvironment},
		{id: "UTL-14", does: "a TLS session of one session, or of one credential, is no other's", run: utlResumption},
	}}
}

// presents has the victim's origin speak TLS with cfg, on new connections.
func (c *testCase) presents(cfg *tls.Config) {
	o := c.origin(victim)
	o.cut()
	// Until the plane can see that its idle connections are closed.
	harness.Poll(c.s.patience, time.Millisecond, func() bool { return !o.serving() })
	o.presents(cfg)
}

// chain signs templates, each by the one before it, the first by the issuer;
// the last is the leaf.
func (c *testCase) chain(by *issuer, templates ...*x509.Certificate) tls.Certificate {
	var out tls.Certificate
	for _, t := range templates {
		next := &issuer{}
		var err error
		if by == nil {
			next.cert, next.key, err = sign(t, nil, nil)
		} else {
			next.cert, next.key, err = sign(t, by.cert, by.key)
		}
		c.must(err)
		by = next
		out.Certificate = append([][]byte{next.cert.Raw}, out.Certificate...)
		out.PrivateKey = next.key
	}
	return out
}

// refusesChain has the victim present a chain. The request must fail as TLS
// does, and nothing of it may be sent.
func (c *testCase) refusesChain(chain tls.Certificate) {
	c.presents(&tls.Config{Certificates: []tls.Certificate{chain}, MinVersion: tls.VersionTLS12})
	c.unverified()
}

func (c *testCase) unverified() {
	a := c.get(victim, "/v1/items?q=QCANARY")
	c.refused("the request", a, notVerified)
	if strings.Contains(a.body, "QCANARY") || strings.Contains(a.body, "x509") || strings.Contains(a.body, "93.184") {
		c.failf("the refusal quotes: %s", a)
	}
	c.untouched()
}

func utlChains(c *testCase) {
	ca := func(change func(*x509.Certificate)) *x509.Certificate {
		t := &x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign}
		change(t)
		return t
	}
	leaf := func(change func(*x509.Certificate)) *x509.Certificate {
		t := honest(victim)
		change(t)
		return t
	}
	plain := func(*x509.Certificate) {}
	for name, templates := range map[string][]*x509.Certificate{
		"of a client": {leaf(func(l *x509.Certificate) {
			l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})},
		"issued by a leaf": {leaf(plain), leaf(plain)},
		"name constraint": {ca(func(t *x509.Certificate) {
			t.PermittedDNSDomains, t.PermittedDNSDomainsCritical = []string{"other.test"}, true
		}), leaf(plain)},
		"excluded name": {ca(func(t *x509.Certificate) { t.ExcludedDNSDomains = []string{"good.test"} }), leaf(plain)},
		"path length": {ca(func(t *x509.Certificate) { t.MaxPathLenZero = true }),
			ca(func(t *x509.Certificate) { t.Subject.CommonName = "too deep" }), leaf(plain)},
		"issuer of clients": {ca(func(t *x509.Certificate) {
			t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), leaf(plain)},
		"unknown extension": {leaf(func(l *x509.Certificate) {
			l.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}, Critical: true,
				Value: []byte{5, 0}}}
		})},
		"expired issuer": {ca(func(t *x509.Certificate) { t.NotAfter = time.Now().Add(-time.Minute) }), leaf(plain)},
	} {
		c.each(name, func(c *testCase) { c.refusesChain(c.chain(on.roots.issuer(), templates...)) })
	}
}

// onEveryWay asks for each kind of upstream connection: without and with a
// body, by clients of both versions, and for a WebSocket. All must be refused.
func (c *testCase) onEveryWay(name string, prepare func(*testCase), want refusal) {
	for way, ask := range map[string]func(c *testCase) answer{
		"GET":  func(c *testCase) answer { return c.get(victim, "/v1/items?q=QCANARY") },
		"POST": func(c *testCase) answer { return c.post(victim, "/v1/items", "QCANARY") },
		"h2": func(c *testCase) answer {
			h := c.h2(victim)
			c.rows++
			h.request(1, "GET", victim, "/v1/items")
			return h.answer(1)
		},
		"WebSocket": func(c *testCase) answer {
			return c.get(victim, "/v1/live", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
		},
	} {
		c.each(name+", "+way, func(c *testCase) {
			prepare(c)
			a := ask(c)
			c.refused("the request", a, want)
			if strings.Contains(a.body, "QCANARY") || strings.Contains(a.body, "x509") {
				c.failf("the refusal quotes: %s", a)
			}
			if want == notVerified {
				c.untouched()
			}
		})
	}
}

func utlOld(c *testCase) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	c.must(err)
	template := honest(victim)
	template.KeyUsage |= x509.KeyUsageKeyEncipherment
	template.SerialNumber, template.NotBefore, template.NotAfter = on.roots.cert.SerialNumber, time.Now().Add(-time.Hour),
		time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, on.roots.cert, &key.PublicKey, on.roots.key)
	c.must(err)
	both := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	for name, cfg := range map[string]*tls.Config{
		"TLS 1.0": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"TLS 1.1": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"RC4": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA, tls.TLS_RSA_WITH_RC4_128_SHA}},
		"3DES": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}},
		"static RSA": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
	} {
		c.each(name, func(c *testCase) {
			cfg.Certificates = both
			c.presents(cfg)
			c.unverified()
		})
	}
	c.each("SSLv3", func(c *testCase) {
		c.strays = true
		o := c.origin(victim)
		o.cut()
		o.takes(func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte("\x16\x03\x00\x00\x2a\x02\x00\x00\x26\x03\x00" + strings.Repeat("r", 32) +
				"\x00\x00\x05\x00"))
			_, _ = io.Copy(io.Discard, conn)
		})
		a := c.get(victim, "/v1/items")
		c.refused("the request", a, notVerified)
	})
}

func utlSlow(c *testCase) {
	many := honest(victim)
	for i := range 6000 {
		many.DNSNames = append(many.DNSNames, fmt.Sprintf("n%d.good.test", i))
	}
	for name, slow := range map[string]struct {
		want refusal
		take func(c *testCase)
	}{
		"stall": {upstreamTimeout, func(c *testCase) {
			c.origin(victim).takes(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		}},
		"drip": {upstreamTimeout, func(c *testCase) {
			c.origin(victim).takes(func(conn net.Conn) {
				hello := "\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + strings.Repeat("r", 100)
				drip := time.NewTicker(50 * time.Millisecond) // too slow for any handshake: that is the attack
				defer drip.Stop()
				for i := range hello {
					if _, err := conn.Write([]byte{hello[i]}); err != nil {
						return
					}
					<-drip.C
				}
			})
		}},
		"huge record": {notVerified, func(c *testCase) {
			c.origin(victim).takes(func(conn net.Conn) {
				_, _ = conn.Write(append([]byte{0x16, 3, 3, 0xff, 0xff}, make([]byte, 1<<16)...))
				_, _ = io.Copy(io.Discard, conn)
			})
		}},
		"huge message": {notVerified, func(c *testCase) {
			c.origin(victim).takes(func(conn net.Conn) {
				record := append([]byte{0x16, 3, 3, 0x40, 0}, append([]byte{2, 0xff, 0xff, 0xff}, make([]byte, 16380)...)...)
				for range 1000 {
					if _, err := conn.Write(record); err != nil {
						return
					}
				}
			})
		}},
		"long chain": {notVerified, func(c *testCase) {
			chain := c.chain(on.roots.issuer(), honest(victim))
			link := bytes.Repeat([]byte{0x30}, 40_000)
			for range 200 {
				chain.Certificate = append(chain.Certificate, link)
			}
			c.presents(&tls.Config{Certificates: []tls.Certificate{chain}, MinVersion: tls.VersionTLS12})
		}},
		"many names": {taken, func(c *testCase) { // honest, if strange
			c.presents(&tls.Config{Certificates: []tls.Certificate{c.chain(on.roots.issuer(), many)},
				MinVersion: tls.VersionTLS12})
		}},
	} {
		dial := patience // what is not slow may take its time on a busy machine
		if slow.want == upstreamTimeout {
			dial = 2 * time.Second
		}
		c.elsewhere(name, fixture{set: func(cfg *proxy.Config) { cfg.Upstream.Dial = dial }}, func(c *testCase) {
			c.unfit, c.strays = true, true
			c.origin(victim).cut()
			slow.take(c)
			before := heap()
			if slow.want == taken {
				c.is("the request", c.get(victim, "/v1/items"), 200)
			} else {
				c.refused("the request", c.get(victim, "/v1/items"), slow.want)
				c.untouched()
			}
			if after := heap(); after > before+48<<20 {
				c.failf("the heap grew by %d MiB", (after-before)>>20)
			}
		})
	}
}

// utlEnvironment: no line of ours turns verification off, and the binary prints
// nothing because of its environment.
func utlEnvironment(c *testCase) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("InsecureSkipVerify: true")) {
			c.failf("%s turns verification off", path)
		}
		return err
	})
	c.must(err)
	keys := filepath.Join(on.dir, "keylog")
	p := newPerson(c.t)
	p.bind("api")
	p.env = append(p.env, "GODEBUG=http2debug=2,tlsrsakex=1,tls10server=1", "SSLKEYLOGFILE="+keys)
	s := p.start()
	s.on(c, "talk", func(c *testCase) {
		c.speaksH2(c.origin(victim), func(f *http2.Framer, id uint32) bool { respond(f, id, "hello"); return true })
		c.is("the request", c.getH2(victim, "/v1/items"), 200)
	})
	if _, err := os.Stat(keys); err == nil {
		c.failf("session keys were written down")
	}
	s.stop()
	if text := s.logs(); on.leaks.Find(text) != "" || bytes.Contains(text, []byte("http2: ")) {
		c.failf("the environment made the program talk: %.300s", text)
	}
}

func utlResumption(c *testCase) {
	other := newWorld(c.t, fixture{})
	defer other.stop()
	leaf, err := on.roots.leaf(victim)
	c.must(err)
	var resumed, full atomic.Int64
	cfg := &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		VerifyConnection: func(s tls.ConnectionState) error {
			if s.DidResume {
				resumed.Add(1)
			} else {
				full.Add(1)
			}
			return nil
		}}
	cfg.SetSessionTicketKeys([][32]byte{{1}}) // crypto/tls has a connection's own otherwise, and resumes nothing
	c.presents(cfg)
	c.is("the first", c.get(victim, "/v1/items"), 200)
	c.origin(victim).cut()
	c.is("the second", c.get(victim, "/v1/items"), 200)
	if resumed.Load() == 0 {
		c.failf("no session is ever resumed: the case would prove nothing")
	}
	c.rebound(&resumed)
	before := resumed.Load()
	c.origin(victim).cut()
	c.as(other, func() { c.is("another session's", c.get(victim, "/v1/items"), 200) })
	if n := resumed.Load() - before; n != 0 {
		c.failf("another session resumed this one's TLS")
	}
}

// rebound asks again with another value in the same binding: no connection and
// no TLS session of the first one may carry it.
func (c *testCase) rebound(resumed *atomic.Int64) {
	const fqn = "github://attacks/api"
	grants := existing(grantsOf(fixture{}))
	b := grants.Bound[fqn]
	b.Credential.Secret = existing(vault.NewSecret([]byte("another-value-" + rand.Text())))
	grants.Bound[fqn] = b
	defer func() { c.s.plane.plane.SetGrants(existing(grantsOf(fixture{}))) }()
	before := resumed.Load()
	c.s.plane.plane.SetGrants(grants)
	c.is("with another value", c.get(victim, "/v1/items"), 200)
	c.is("with another value and a body", c.post(victim, "/v1/items", "body"), 200)
	carried := map[int64]string{}
	for _, h := range c.hits(victim) {
		if first, ok := carried[h.conn]; ok && first != h.Header.Get("Authorization") {
			c.failf("one connection carried two values of a binding")
		}
		carried[h.conn] = h.Header.Get("Authorization")
	}
	if n := resumed.Load() - before; n != 0 {
		c.failf("another value resumed the TLS session of the first one")
	}
}
