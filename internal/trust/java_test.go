package trust_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/trust"
)

// store returns a trust store as Java has it.
func store(t *testing.T, roots []byte) *fstest.MapFile {
	t.Helper()
	data := must.Get(ca.JavaTrustStore(roots))(t)
	return &fstest.MapFile{Mode: 0o644, Data: data}
}

// trusted returns the roots that the sandbox's Java has.
func trusted(t *testing.T, put map[string]string) string {
	t.Helper()
	roots := must.Get(ca.JavaRoots([]byte(put[trust.JavaStoreFile])))(t)
	return string(roots)
}

func getenv(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestJavaKeepsItsOwnRoots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  map[string]string
		at   string // of the store
		want bool   // that its roots are trusted
	}{
		{name: "no Java"},
		{name: "Debian's", at: "etc/ssl/certs/java/cacerts", want: true},
		{name: "Fedora's", at: "etc/pki/java/cacerts", want: true},
		{name: "JAVA_HOME", env: map[string]string{"JAVA_HOME": "/opt/x"}, at: "opt/x/lib/security/cacerts", want: true},
		{name: "a JDK 8", env: map[string]string{"JAVA_HOME": "/opt/x"}, at: "opt/x/jre/lib/security/cacerts", want: true},
		{name: "PATH", env: map[string]string{"PATH": "/bin:/opt/jdk/bin"}, at: "opt/jdk/lib/security/cacerts", want: true},
		{name: "PATH names no Java", env: map[string]string{"PATH": "/bin:/opt/go/bin"}, at: "opt/go/lib/security/cacerts"},
		{name: "JAVA_HOME is no path", env: map[string]string{"JAVA_HOME": "opt/x"}, at: "opt/x/lib/security/cacerts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.options.Getenv = getenv(c.env)
			image, want := w.image("etc/ssl/cert.pem"), string(w.own)+string(w.session)
			if c.at != "" {
				image[c.at] = store(t, w.java)
			}
			if c.want {
				want = string(w.java) + string(w.session)
			}
			if got := trusted(t, w.install(t, image)); got != want {
				t.Errorf("Java trusts\n%s\nwant\n%s", got, want)
			}
			if w.log.Len() > 0 {
				t.Errorf("warnings: %s", w.log.String())
			}
		})
	}
}

// A store with two names is read once, and one that is broken is named; Java
// has the others, or the system's roots.
func TestABrokenJavaStoreIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.Getenv = getenv(map[string]string{"JAVA_HOME": "/opt/java"})
	image := w.image("etc/ssl/cert.pem", "opt/java/lib/security/cacerts = no store")
	if got := trusted(t, w.install(t, image)); got != string(w.own)+string(w.session) {
		t.Errorf("with a broken store, Java trusts\n%s", got)
	}
	image["etc/pki/java/cacerts"] = store(t, w.java)
	links := w.image("etc/ssl/certs/java/cacerts -> ../../../pki/java/cacerts",
		"etc/pki/ca-trust/extracted/java/cacerts -> cacerts")
	maps.Copy(image, links)
	w.log.Reset()
	if got := trusted(t, w.install(t, image)); got != string(w.java)+string(w.session) {
		t.Errorf("with another one, Java trusts\n%s", got)
	}
	said := w.log.String()
	for _, want := range []string{
		"/opt/java/lib/security/cacerts: read the Java trust store",
		"/etc/pki/ca-trust/extracted/java/cacerts: its links lead in a circle",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the warning does not name %q: %s", want, said)
		}
	}
	if n := strings.Count(said, "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one: %s", n, said)
	}
}

// An image may name as many Javas as it likes: eight are read.
func TestABoundedNumberOfJavasIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image, dirs := w.image("etc/ssl/cert.pem"), []string{}
	for n := range 20 {
		image[fmt.Sprintf("opt/java%02d/lib/security/cacerts", n)] = &fstest.MapFile{Data: []byte("no store")}
		dirs = append(dirs, fmt.Sprintf("/opt/java%02d/bin", n))
	}
	w.options.Getenv = getenv(map[string]string{"JAVA_HOME": "/opt/home", "PATH": strings.Join(dirs, ":")})
	w.install(t, image)
	if said := w.log.String(); strings.Count(said, "/opt/java") != 7 || strings.Contains(said, "java07") {
		t.Errorf("the Javas that are read, besides JAVA_HOME: %s, want the first seven", said)
	}
}
