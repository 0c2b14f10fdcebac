package upstream

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestOneStrongChainIsEnough(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	rsa1024, err := rsa.GenerateKey(rand.Reader, 1024)
	must.Do(t, err)
	strong := &x509.Certificate{PublicKey: p256.Public(), SignatureAlgorithm: x509.ECDSAWithSHA256}
	weak := &x509.Certificate{PublicKey: rsa1024.Public(), SignatureAlgorithm: x509.SHA256WithRSA}
	for name, c := range map[string]struct {
		chains [][]*x509.Certificate
		want   error
	}{
		"none":           {nil, errWeakChain},
		"empty":          {[][]*x509.Certificate{{}}, errWeakChain},
		"weak":           {[][]*x509.Certificate{{strong, weak}}, errWeakChain},
		"weak, strong":   {[][]*x509.Certificate{{strong, weak}, {strong, strong}}, nil},
		"all of two bad": {[][]*x509.Certificate{{weak}, {strong, weak}}, errWeakChain},
	} {
		if err := verifyStrength(tls.ConnectionState{VerifiedChains: c.chains}); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestWhatSignsAndWhatIsSignedIsStrong(t *testing.T) {
	for a, want := range map[x509.SignatureAlgorithm]bool{
		x509.UnknownSignatureAlgorithm: false, x509.MD5WithRSA: false, x509.SHA1WithRSA: false, x509.ECDSAWithSHA1: false,
		x509.SHA256WithRSA: true, x509.SHA384WithRSAPSS: true, x509.ECDSAWithSHA512: true, x509.PureEd25519: true,
	} {
		if got := isStrongSignature(a); got != want {
			t.Errorf("a signature by %v is strong: %v, want %v", a, got, want)
		}
	}
	rsaKey := func(bits uint) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
	}
	for name, c := range map[string]struct {
		key  any
		want bool
	}{
		"RSA of 2047 bits": {rsaKey(2047), false},
		"RSA of 2048 bits": {rsaKey(2048), true},
		"P-224":            {&ecdsa.PublicKey{Curve: elliptic.P224()}, false},
		"P-256":            {&ecdsa.PublicKey{Curve: elliptic.P256()}, true},
		"Ed25519":          {ed25519.PublicKey{}, true},
		"one of no kind":   {struct{}{}, false},
	} {
		if got := isStrongKey(c.key); got != c.want {
			t.Errorf("%s is strong: %v, want %v", name, got, c.want)
		}
	}
}

// A session that was made before the rule is judged by it all the same.
func TestAResumedSessionIsJudgedAgain(t *testing.T) {
	var judged, resumed atomic.Int64
	o := newOrigin(t, "http/1.1", func(n int64, c *tls.Conn) {
		if c.ConnectionState().DidResume {
			resumed.Add(1)
		}
		respond(func(*http.Request) string {
			return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
		})(n, c)
	})
	u := o.client(t)
	pool := u.pool(Key{})
	rule := pool.tls.config.VerifyConnection
	pool.tls.config.VerifyConnection = func(s tls.ConnectionState) error { judged.Add(1); return rule(s) }
	for range 3 {
		if status, body, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{}); status != 200 || body != "hello" {
			t.Fatalf("got %d %q, %v", status, body, err)
		}
		o.awaitEnd(t)
	}
	if judged.Load() != 3 || resumed.Load() != 2 {
		t.Errorf("of 3 connections %d were judged and %d resumed", judged.Load(), resumed.Load())
	}
	pool.tls.config.VerifyConnection = func(tls.ConnectionState) error { return errWeakChain }
	if _, _, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{}); errorKind(t, err) != NotVerified {
		t.Errorf("a resumed session that is refused: %v", err)
	}
}
