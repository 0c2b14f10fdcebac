package images

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// Of the Javas that an image's PATH names eight are looked at: in "javas" the
// seventh has the root, and what those behind the eighth have is no store.
func TestJavaTrustsWhatItDidAndTheSession(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, image := range []string{"jdk", "javas"} {
			t.Run(image, func(t *testing.T) {
				t.Parallel()
				trustsItsOwn(t, engine, image)
			})
		}
	})
}

// trustsItsOwn wants a Java that trusts its image's own root, the session, and
// no other.
func trustsItsOwn(t *testing.T, engine, image string) {
	t.Helper()
	p := newPerson(t, engine)
	// With all Javas in place, none needs an option, which it would print.
	at, wantOptions := "/opt/jdk/lib/security/cacerts", ""
	if image == "javas" {
		at, wantOptions = "/opt/java7/lib/security/cacerts", "-Djavax.net.ssl.trustStore=/etc/aileron/proxy/trust.p12"
	}
	r := p.box(ref(image), nil, script("cp /etc/aileron/proxy/trust.p12 .; cp "+at+
		` cacerts; echo "Java: $JAVA_TOOL_OPTIONS"`))
	p.works(r)
	_, options, _ := strings.Cut(r.out, "\nJava: ")
	if options, _, _ = strings.Cut(strings.TrimSpace(options), " "); options != wantOptions {
		t.Errorf("Java gets the options %q, want %q, in %s", options, wantOptions, r.out)
	}
	if r.err != "" {
		t.Errorf("it says %q", r.err)
	}
	for name, password := range map[string]string{"trust.p12": "changeit", "cacerts": ""} {
		store := must.Get(os.ReadFile(filepath.Join(p.project, name)))(t)
		holdsBoth(t, name, must.Get(pkcs12.DecodeTrustStore(store, password))(t))
	}
}

// holdsBoth wants the image's root and the session's in a store, and no other.
func holdsBoth(t *testing.T, store string, roots []*x509.Certificate) {
	t.Helper()
	var names []string
	for _, c := range roots {
		names = append(names, c.Subject.CommonName)
	}
	if len(names) != 2 || !slices.Contains(names, recipes.OwnRoot) ||
		!slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(n), "aileron") }) {
		t.Errorf("Java's %s has %q, want its own root and the session's", store, names)
	}
}

// The options of an image's own stay, and none of them comes after ours.
func TestJavaKeepsItsOptionsAndTrustsTheSession(t *testing.T) {
	t.Parallel()
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
