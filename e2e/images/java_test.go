package images

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// Of the Javas that an image's PATH names seven are looked at: in "javas" the
// seventh has the root, and what those behind it have is no store.
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
	r := p.box(ref(image), nil, script("cp /etc/aileron/proxy/trust.p12 ."))
	p.works(r)
	if r.err != "" {
		t.Errorf("it says %q", r.err)
	}
	store := must.Get(os.ReadFile(filepath.Join(p.project, "trust.p12")))(t)
	roots := must.Get(pkcs12.DecodeTrustStore(store, "changeit"))(t)
	var names []string
	for _, c := range roots {
		names = append(names, c.Subject.CommonName)
	}
	if len(names) != 2 || !slices.Contains(names, recipes.OwnRoot) ||
		!slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(n), "aileron") }) {
		t.Errorf("Java trusts %q, want its own root and the session's", names)
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
