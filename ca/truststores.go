package ca

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
)

// FoundStore is a trust store that there is, or of which there should be one.
type FoundStore struct {
	Store
	Link string // by which it was found, if it is a symbolic link or below one
	Err  error  // why no root can be added, with what to do about it; nil: one can
}

// FindStores returns the trust stores of this host that programs of a user read: the system's, NSS's databases below
// the user's home, and the cacerts of every Java. getenv is [os.Getenv], of which it reads JAVA_HOME.
func FindStores(home string, getenv func(string) string) []FoundStore {
	found := []FoundStore{findSystem()}
	found = append(found, findNSS(home)...)
	return append(found, findJava(home, getenv("JAVA_HOME"))...)
}

// locate returns the store at path with the links in its path resolved.
func locate(kind StoreKind, path string) FoundStore {
	f := FoundStore{Store: Store{kind, path}}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		f.Err = err
		return f
	}
	if f.Path = real; real != path {
		f.Link = path
	}
	f.Err = writable(real)
	return f
}

func findSystem() FoundStore {
	if systemCommand() == nil {
		err := hint.New(errors.New("the store of this system is not known"),
			"give a program the root alone: aileron ca show SESSION --pem")
		return FoundStore{Store: Store{Kind: SystemStore}, Err: err}
	}
	f := locate(SystemStore, filepath.Dir(systemAnchor()))
	if f.Err == nil {
		_, f.Err = findTool(systemCommand()[0])
	}
	return f
}

// nssPlaces are directories of databases below a home: Chromium's, before and after it moved, those of Chromium and
// Firefox as snap and flatpak have them, and Firefox's profiles.
var nssPlaces = [...]string{
	".pki/nssdb", ".local/share/pki/nssdb", "snap/chromium/current/.pki/nssdb",
	".var/app/org.chromium.Chromium/data/pki/nssdb", ".var/app/com.google.Chrome/data/pki/nssdb",
	".mozilla/firefox/*", ".config/mozilla/firefox/*", "snap/firefox/common/.mozilla/firefox/*",
	".var/app/org.mozilla.firefox/.mozilla/firefox/*",
}

func findNSS(home string) (found []FoundStore) {
	_, missing := findTool("certutil")
	for _, place := range nssPlaces {
		paths, _ := filepath.Glob(filepath.Join(globLiteral(home), place, nssDatabase))
		for _, path := range paths {
			f := locate(NSSStore, filepath.Dir(path))
			if f.Err == nil {
				f.Err = writable(filepath.Join(f.Path, nssDatabase))
			}
			if f.Err == nil {
				f.Err = missing
			}
			found = appendStore(found, f)
		}
	}
	if len(found) == 0 {
		path := filepath.Join(home, nssPlaces[0])
		err := hint.New(errors.New("no browser of this user has a database of certificates"),
			"start the browser once; or: mkdir -p %s && certutil -N --empty-password -d sql:%s", path, path)
		found = []FoundStore{{Store: Store{NSSStore, path}, Err: err}}
	}
	return found
}

// findJava looks for the Java of JAVA_HOME, that of PATH, and where distributions and SDKMAN install them.
func findJava(home, javaHome string) (found []FoundStore) {
	homes := []string{javaHome}
	if java, err := findTool("java"); err == nil {
		if java, err = filepath.EvalSymlinks(java); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(java)))
		}
	}
	for _, pattern := range []string{"/usr/lib/jvm/*", filepath.Join(globLiteral(home), ".sdkman/candidates/java/*")} {
		installed, _ := filepath.Glob(pattern)
		homes = append(homes, installed...)
	}
	for _, home := range homes {
		for _, place := range []string{"lib/security/cacerts", "jre/lib/security/cacerts"} {
			path := filepath.Join(home, place)
			if _, err := os.Stat(path); home == "" || err != nil {
				continue
			}
			f := locate(JavaStore, path)
			if f.Err == nil {
				f.Err = writable(filepath.Dir(f.Path)) // it is replaced
			}
			found = appendStore(found, f)
		}
	}
	if len(found) == 0 {
		err := hint.New(errors.New("no Java was found"), "set JAVA_HOME to the Java's directory")
		found = []FoundStore{{Store: Store{Kind: JavaStore}, Err: err}}
	}
	return found
}

// appendStore appends a store once: many names lead to Debian's cacerts.
func appendStore(found []FoundStore, f FoundStore) []FoundStore {
	if slices.ContainsFunc(found, func(known FoundStore) bool { return known.Store == f.Store }) {
		return found
	}
	return append(found, f)
}

// globLiteral returns a pattern that matches exactly path.
func globLiteral(path string) string {
	var out []rune
	for _, r := range path {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

// String returns the kind and the path.
func (s Store) String() string { return fmt.Sprintf("%s %s", s.Kind, s.Path) }
