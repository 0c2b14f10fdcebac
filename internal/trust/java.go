package trust

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/imagefs"
)

// javaStores are Java's own roots, besides those in the image's JAVA_HOME.
var javaStores = [...]string{
	"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts",
}

// An image may name as many Javas as it likes. These are read.
const (
	maxJavaHomes = 8
	maxJavaRoots = 16 << 20
)

// java adds a store for Java: a JVM takes its roots from one file, which so has
// to hold the image's own as well.
func (in *installer) java(system []byte) {
	if in.err != nil {
		return
	}
	roots, err := in.javaRoots()
	if err != nil {
		in.options.Log.Warn("a Java trust store of the image is not read: "+
			"Java in the sandbox trusts the system's roots and the session's", "error", err)
	}
	if roots == nil {
		roots = system
	}
	store, err := ca.JavaTrustStore(ca.Bundle(roots, in.root))
	if err != nil {
		in.fail(err)
		return
	}
	in.put(JavaStoreFile, store)
}

// javaRoots returns what the image's Java trusts, as PEM; nil if it has no
// store. The error names those that are not read.
func (in *installer) javaRoots() (roots []byte, err error) {
	read := map[string]bool{}
	for _, name := range in.javaStores() {
		if len(roots) > maxJavaRoots {
			return roots, errors.Join(err, fmt.Errorf("%s: those before it are %d MiB already", name, len(roots)>>20))
		}
		place, failure := imagefs.Resolve(in.image, inFS(name))
		if failure == nil && (!place.Exists() || read[place.Path]) {
			continue
		}
		read[place.Path] = true
		data, failure := in.read(name)
		if failure == nil {
			data, failure = ca.JavaRoots(data)
		}
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, withoutPath(failure)))
			continue
		}
		roots = append(roots, data...)
	}
	return roots, err
}

// javaStores returns the known places, and those in the Javas that the image's
// environment names.
func (in *installer) javaStores() []string {
	homes := []string{in.options.Getenv("JAVA_HOME")}
	for dir := range strings.SplitSeq(in.options.Getenv("PATH"), ":") {
		if home, ok := strings.CutSuffix(dir, "/bin"); ok && len(homes) < maxJavaHomes && namesJava(home) {
			homes = append(homes, home)
		}
	}
	stores := slices.Clone(javaStores[:])
	for _, home := range homes {
		if store := path.Join(home, "lib/security/cacerts"); path.IsAbs(home) && !slices.Contains(stores, store) {
			stores = append(stores, store, path.Join(home, "jre/lib/security/cacerts")) // the second one: a JDK 8
		}
	}
	return stores
}

func namesJava(dir string) bool {
	return strings.Contains(dir, "java") || strings.Contains(dir, "jdk") || strings.Contains(dir, "jre")
}
