package trust_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
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

// The session's root is in each store of the image's Javas, where a JVM reads it without an option; with one that is
// missed, or may be, options are needed.
func TestTheStoresOfTheImagesJavasHaveTheRoot(t *testing.T) {
	t.Parallel()
	const debian, debianStore = "etc/ssl/certs/java/cacerts", "/usr/lib/jvm/java-17/lib/security/cacerts"
	packaged := []string{"usr/bin/java -> /etc/alternatives/java",
		"etc/alternatives/java -> /usr/lib/jvm/java-17/bin/java", "usr/lib/jvm/java-17/bin/java",
		"usr/lib/jvm/java-17/lib/security/cacerts -> /" + debian}
	for _, c := range []struct {
		name    string
		env     map[string]string
		image   []string
		stores  []string // that Javas read
		inPlace bool
	}{
		{"Debian's", nil, packaged, []string{debianStore}, true},
		{"another PATH", map[string]string{"PATH": "/x:/opt/tool/bin"},
			[]string{"opt/tool/bin/java -> ../../j/bin/java", "opt/j/bin/java"}, []string{"/opt/j/lib/security/cacerts"}, true},
		{"a JDK 8", nil, []string{"usr/bin/java -> /opt/8/jre/bin/java", "opt/8/jre/bin/java"},
			[]string{"/opt/8/jre/lib/security/cacerts"}, true},
		{"SDKMAN", map[string]string{"SDKMAN_DIR": "/opt/sdkman"},
			[]string{"opt/sdkman/candidates/java/current -> 17", "opt/sdkman/candidates/java/17/bin/java"},
			[]string{"/opt/sdkman/candidates/java/17/lib/security/cacerts"}, true},
		{"jssecacerts", map[string]string{"JAVA_HOME": "/opt/x"}, nil,
			[]string{"/opt/x/lib/security/cacerts", "/opt/x/lib/security/jssecacerts"}, true},
		{"two", map[string]string{"JAVA_HOME": "/opt/x"}, packaged,
			[]string{debianStore, "/opt/x/lib/security/cacerts"}, true},
		{"SUSE's", nil, nil, []string{"/var/lib/ca-certificates/java-cacerts"}, true},
		{"no Java", nil, nil, nil, false},
		{"a Java without a store", map[string]string{"JAVA_HOME": "/opt/x"}, append(packaged, "opt/x/bin/java"),
			[]string{debianStore}, false},
		{"a program that finds a Java", nil, append(packaged, "usr/local/bin/java = #!/bin/sh"),
			[]string{debianStore}, false},
		{"a store that is not read", map[string]string{"JAVA_HOME": "/opt/x"},
			append(packaged, "opt/x/lib/security/cacerts = no store"), []string{debianStore}, false},
		{"a store that the sandbox does not see", map[string]string{"JAVA_HOME": "/home/agent/jdk"},
			append(packaged, "home/agent/jdk/lib/security/cacerts = STORE"), []string{debianStore}, false},
		{"options of the image", map[string]string{"JAVA_TOOL_OPTIONS": "-Xmx1g"}, packaged, []string{debianStore}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.options.Getenv = getenv(c.env)
			image := w.image(append(c.image, "etc/ssl/cert.pem")...)
			for name, f := range image {
				if string(f.Data) == "STORE" {
					image[name] = store(t, w.java)
				}
			}
			for _, name := range c.stores {
				if place := must.Get(imagefs.Resolve(image, name[1:]))(t); !place.Exists() {
					image[place.Path] = store(t, w.java)
				}
			}
			put := w.install(t, image)
			for _, name := range c.stores {
				roots := must.Get(ca.JavaRoots([]byte(in(t, image, put, name))))(t)
				if string(roots) != string(w.java)+string(w.session) {
					t.Errorf("a Java that reads %s trusts\n%s", name, roots)
				}
			}
			if w.javaInPlace != c.inPlace {
				t.Errorf("in place: %v, want %v", w.javaInPlace, c.inPlace)
			}
			if strings.Contains(fmt.Sprint(slices.Collect(maps.Keys(put))), "/home/agent") {
				t.Errorf("a file is put into the project: %q", put)
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
	for n := range 20 { // the others may have any store
		image[fmt.Sprintf("opt/java%02d/lib/security/cacerts", n)] = store(t, w.java)
	}
	if w.install(t, image); w.javaInPlace {
		t.Error("with Javas that are not read, a JVM gets no options")
	}
	w.options.Getenv = getenv(map[string]string{"PATH": strings.Join(dirs[:8], ":")})
	if w.install(t, image); !w.javaInPlace {
		t.Error("with eight, a JVM gets options")
	}
	w.options.Getenv = getenv(map[string]string{"PATH": strings.Repeat("/bin:", 40)})
	image["etc/pki/java/cacerts"] = store(t, w.java)
	if w.install(t, image); w.javaInPlace {
		t.Error("with directories of PATH that are not looked at, a JVM gets no options")
	}
}
