package trust

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/imagefs"
)

// javaStores are Java's own roots, besides those in the image's Javas.
var javaStores = [...]string{
	"/etc/ssl/certs/java/cacerts",              // Debian, Alpine, Arch
	"/etc/pki/java/cacerts",                    // RHEL, Fedora
	"/etc/pki/ca-trust/extracted/java/cacerts", // RHEL, Fedora
	"/var/lib/ca-certificates/java-cacerts",    // SUSE
}

// javaVariables are variables that name a Java, or SDKMAN's directory, and where the Java is below it.
var javaVariables = [...]struct{ name, below string }{
	{"JAVA_HOME", ""}, {"JDK_HOME", ""}, {"JRE_HOME", ""}, {"GRAALVM_HOME", ""},
	{"SDKMAN_DIR", "candidates/java/current"},
}

// storesOfHome are where a Java has its roots. It takes jssecacerts before cacerts; a JDK 8 has both in its jre.
var storesOfHome = [...]string{
	"lib/security/jssecacerts", "lib/security/cacerts", "jre/lib/security/jssecacerts", "jre/lib/security/cacerts",
}

// enginesPath is the PATH that engines set where an image has none.
const enginesPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// An image may name as many Javas as it likes. These are read.
const (
	maxJavaHomes = 8
	maxPathDirs  = 32
	maxJavaRoots = 16 << 20
)

// java adds the root to the stores of the image's Javas, each in its place, and makes one with the roots of all: a JVM
// takes its roots from one file, which so has to hold the image's own as well.
func (in *installer) java(system []byte) {
	if in.err != nil {
		return
	}
	j := javas{in: in, read: map[string]bool{}}
	j.find()
	if j.err != nil {
		in.options.Log.Warn("a Java trust store of the image is not read: "+
			"Java in the sandbox trusts the system's roots and the session's", "error", j.err)
	}
	if j.roots == nil {
		j.roots = system
	}
	store, err := ca.JavaTrustStore(ca.Bundle(j.roots, in.root))
	if err != nil {
		in.fail(err)
		return
	}
	in.put(JavaStoreFile, store)
	for _, f := range j.stores {
		in.add(f)
	}
	// With options of its own, a JVM prints them whatever is added, and they may name a store.
	in.javaInPlace = len(j.stores) > 0 && j.err == nil && !j.missed && in.options.Getenv(JavaVariable) == ""
}

// javas are the Javas of an image.
type javas struct {
	in     *installer
	read   map[string]bool // paths of stores
	roots  []byte          // of all stores, as PEM
	stores []File          // with the session's root
	err    error           // names the stores that are not read
	missed bool            // a Java, or there may be one, whose store is not among stores
}

func (j *javas) find() {
	homes := j.homes()
	for _, store := range javaStores {
		j.store(store)
	}
	for _, home := range homes {
		has := false
		for _, name := range storesOfHome {
			has = j.store(path.Join(home, name)) || has
		}
		j.missed = j.missed || !has && j.exists(path.Join(home, "bin/java"))
	}
}

// store reads a store, if it exists, and adds the session's root to it. It reports whether it exists.
func (j *javas) store(name string) bool {
	place, err := imagefs.Resolve(j.in.image, inFS(name))
	if err == nil && (!place.Exists() || j.read[place.Path]) {
		return place.Exists()
	}
	j.read[place.Path] = true
	if err == nil {
		err = j.add(name, "/"+place.Path)
	}
	if err != nil {
		j.err = errors.Join(j.err, fmt.Errorf("%s: %w", name, withoutPath(err)))
	}
	return true
}

func (j *javas) add(name, to string) error {
	if len(j.roots) > maxJavaRoots {
		return fmt.Errorf("those before it are %d MiB already", len(j.roots)>>20)
	}
	data, err := j.in.read(name)
	if err != nil {
		return err
	}
	roots, err := ca.JavaRoots(data)
	if err != nil {
		return err
	}
	j.roots = append(j.roots, roots...)
	with, err := ca.AddToJavaStore(data, j.in.root)
	if ok := err == nil && !j.in.mounted(to); ok {
		j.stores = append(j.stores, File{Path: to, Mode: 0o644, Data: with})
	} else { // the store with the roots of all remains
		j.missed = true
	}
	return nil
}

// homes returns the directories of the Javas that the image's environment names, by variables and as the java of its
// PATH.
func (j *javas) homes() []string {
	var homes []string
	add := func(home string) {
		switch {
		case !path.IsAbs(home) || slices.Contains(homes, home):
		case len(homes) == maxJavaHomes:
			j.missed = true
		default:
			homes = append(homes, home)
		}
	}
	for _, v := range javaVariables {
		if value := j.in.options.Getenv(v.name); value != "" {
			add(path.Join(value, v.below))
		}
	}
	dirs := strings.Split(cmp.Or(j.in.options.Getenv("PATH"), enginesPath), ":")
	if len(dirs) > maxPathDirs {
		dirs, j.missed = dirs[:maxPathDirs], true
	}
	for _, dir := range dirs {
		if home, ok := strings.CutSuffix(dir, "/bin"); ok && namesJava(home) {
			add(home)
		}
	}
	for _, dir := range dirs {
		if place, err := imagefs.Resolve(j.in.image, inFS(path.Join(dir, "java"))); err == nil && place.Exists() {
			add(path.Dir(path.Dir("/" + place.Path)))
		}
	}
	return homes
}

// exists reports whether the image may have something there.
func (j *javas) exists(name string) bool {
	place, err := imagefs.Resolve(j.in.image, inFS(name))
	return err != nil || place.Exists()
}

func namesJava(dir string) bool {
	return strings.Contains(dir, "java") || strings.Contains(dir, "jdk") || strings.Contains(dir, "jre")
}
