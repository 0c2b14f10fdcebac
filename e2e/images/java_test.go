package images

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// ownRoot is what only the Java of the image "jdk" trusts.
const ownRoot = "Root of an image's own Java"

// cacerts is a trust store as JDKs from 18 on have it: no password.
var cacerts = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: ownRoot}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	store, err := pkcs12.Passwordless.EncodeTrustStore([]*x509.Certificate{cert}, "")
	if err != nil {
		panic(err)
	}
	return store
})

// Of the Javas that an image's PATH names seven are looked at: in "javas" the
// seventh has the root, and what those behind it have is no store.
func TestJavaTrustsWhatItDidAndTheSession(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		for _, image := range []string{"jdk", "javas"} {
			t.Run(image, func(t *testing.T) { trustsItsOwn(t, engine, image) })
		}
	})
}

// trustsItsOwn wants a Java that trusts its image's own root, the session, and
// nobody else.
func trustsItsOwn(t *testing.T, engine, image string) {
	t.Helper()
	p := newPerson(t, engine)
	r := p.box(ref(image), nil, script("cp /etc/aileron/proxy/trust.p12 ."))
	p.works(r)
	if r.err != "" {
		t.Errorf("it says %q", r.err)
	}
	store, err := os.ReadFile(filepath.Join(p.project, "trust.p12"))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := pkcs12.DecodeTrustStore(store, "changeit")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range roots {
		names = append(names, c.Subject.CommonName)
	}
	if len(names) != 2 || !slices.Contains(names, ownRoot) || !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(n), "aileron") }) {
		t.Errorf("Java trusts %q, want its own root and the session's", names)
	}
}

// The options of an image's own stay, and none of them comes after ours.
func TestJavaKeepsItsOptionsAndTrustsTheSession(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		r := p.box(ref("options"), nil, script(`echo "$JAVA_TOOL_OPTIONS"`))
		p.works(r)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		said := lines[len(lines)-1]
		if !strings.HasPrefix(said, "-Xmx64m -Djavax.net.ssl.trustStore=/opt/own.p12 -D") ||
			!strings.HasPrefix(said[strings.LastIndex(said, "trustStore="):], "trustStore=/etc/aileron/proxy/trust.p12 ") {
			t.Errorf("the options are %q, want the image's and then ours", said)
		}
	})
}
