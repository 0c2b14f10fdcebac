package ca

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
)

// StoreKind is a kind of trust store.
type StoreKind string

// The kinds of trust stores.
const (
	SystemStore StoreKind = "system" // the directory of the distribution, from which its bundle is made
	NSSStore    StoreKind = "nss"    // a database of Chromium or Firefox
	JavaStore   StoreKind = "java"   // a Java's cacerts
)

// StoreKinds returns all kinds.
func StoreKinds() []StoreKind { return []StoreKind{SystemStore, NSSStore, JavaStore} }

// Store is a trust store of this host. [FindStores] returns those that there are. Only roots for a host are added or
// removed, see [ParseHostRoot]: whatever a Store and a certificate were read from, no other root is touched.
type Store struct {
	Kind StoreKind `json:"kind"`
	Path string    `json:"path"` // without symbolic links
}

// Add adds a root to the store. It is no error if the store has it.
func (s Store) Add(ctx context.Context, root *x509.Certificate) error {
	err := s.check(root)
	if err == nil {
		switch s.Kind {
		case SystemStore:
			err = s.addSystem(ctx, root)
		case NSSStore:
			err = s.addNSS(ctx, root)
		case JavaStore:
			err = s.addJava(ctx, root)
		}
	}
	return wrap("add the root to "+s.Path, err)
}

// Remove removes a root from the store. It is no error if the store, or what it is part of, does not have it.
func (s Store) Remove(ctx context.Context, root *x509.Certificate) error {
	if _, err := os.Lstat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return nil // a profile, or a Java, that was removed
	}
	err := s.check(root)
	if err == nil {
		switch s.Kind {
		case SystemStore:
			err = s.removeSystem(ctx, root)
		case NSSStore:
			err = s.removeNSS(ctx, root)
		case JavaStore:
			err = s.removeJava(ctx, root)
		}
	}
	return wrap("remove the root from "+s.Path, err)
}

// wrap adds what was being done to the text of an error; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// check returns an error unless the certificate is a root for a host, and the store one that only this user changes.
func (s Store) check(root *x509.Certificate) error {
	if _, err := hostRootSession(root); err != nil {
		return err
	}
	switch s.Kind {
	case SystemStore:
		if path, err := systemAnchors(); err != nil || path != s.Path {
			return errors.New("it is not the store of this system")
		}
	case NSSStore, JavaStore:
	default:
		return fmt.Errorf("its kind %.20q is not known", s.Kind)
	}
	return writable(s.Path)
}

// hostRootName is how the common name of a root for a host begins; the session's id follows.
const hostRootName = "Aileron host root "

// ParseHostRoot returns the root for a host that PEM data holds. It refuses any other certificate: that of another
// session, one that has no end within [hostLifetime], and a session's own root, which can vouch for any name. The names
// that a host root can vouch for are constraints of its only intermediate, and cannot be read from the root: they are
// what the process of the session, which must be the caller's own, made.
func ParseHostRoot(data []byte, session string, now time.Time) (*x509.Certificate, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("read the session's root: it is not one certificate")
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the session's root: %w", err)
	}
	id, err := hostRootSession(root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the session's root: %w", err)
	case id != session:
		return nil, fmt.Errorf("read the session's root: it is that of the session %s", id)
	case now.After(root.NotAfter):
		return nil, fmt.Errorf("read the session's root: it has ended at %s", root.NotAfter.Local().Format(time.RFC3339))
	case root.NotAfter.Sub(now) > hostLifetime:
		return nil, fmt.Errorf("read the session's root: it ends later than in %v", hostLifetime)
	}
	return root, nil
}

// hostRootSession returns the session of a root for a host. The name is part of files and arguments of programs that
// may run as root, so it is held to the form of an id.
func hostRootSession(root *x509.Certificate) (string, error) {
	name, ok := strings.CutPrefix(root.Subject.CommonName, hostRootName)
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case !ok || name == "" || len(name) > 26 || strings.Trim(name, digits) != "":
		return "", errors.New("it is not a root for this host's programs")
	case !root.IsCA || root.MaxPathLen != 1 || len(root.ExtKeyUsage) != 1 ||
		root.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth || root.CheckSignatureFrom(root) != nil:
		return "", errors.New("it has not the form of a root for this host's programs")
	}
	return name, nil
}

// fileName is the name of a root in stores where names are files or aliases.
func fileName(root *x509.Certificate) string {
	return strings.ToLower(strings.ReplaceAll(root.Subject.CommonName, " ", "-"))
}

// systemAnchors returns the directory of the system's own roots. truststore knows where distributions have it, and the
// program that makes the bundle from it. truststore's Install and Uninstall are not used: they run sudo, which asks for
// a password when a session ends, have no time-out, and leave links to the removed file in /etc/ssl/certs.
func systemAnchors() (string, error) {
	if systemCommand() == nil {
		return "", errors.New("the store of this system is not known")
	}
	return filepath.EvalSymlinks(filepath.Dir(systemAnchor()))
}

func (s Store) anchor(root *x509.Certificate) string {
	return filepath.Join(s.Path, fmt.Sprintf(filepath.Base(systemAnchor()), fileName(root)))
}

func (s Store) addSystem(ctx context.Context, root *x509.Certificate) error {
	unlock, err := lockDir(ctx, s.Path)
	if err != nil {
		return err
	}
	defer unlock()
	file := s.anchor(root)
	// A file that a killed command left is made anew. Nothing is followed: the name could be a link.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // every program reads it
	if err != nil {
		return err
	}
	_, err = f.Write(encodePEM(root))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil { // whatever the umask
		return err
	}
	if err := updateSystem(ctx); err != nil {
		return err
	}
	if !systemHolds(root) {
		return fmt.Errorf("%s has not added it to the system's bundle", systemCommand()[0])
	}
	return nil
}

func (s Store) removeSystem(ctx context.Context, root *x509.Certificate) error {
	unlock, err := lockDir(ctx, s.Path)
	if err != nil {
		return err
	}
	defer unlock()
	file := s.anchor(root)
	err = os.Remove(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if linked := removeLinks(file); err == nil || linked || systemHolds(root) {
		if err := updateSystem(ctx); err != nil {
			return err
		}
	}
	if systemHolds(root) {
		return fmt.Errorf("%s has not removed it from the system's bundle", systemCommand()[0])
	}
	return removeHooked(ctx, root)
}

func updateSystem(ctx context.Context) error {
	_, err := runTool(ctx, nil, systemCommand()[0], systemCommand()[1:]...)
	return err
}

func systemHolds(root *x509.Certificate) bool {
	bundle, err := SystemBundle()
	return err == nil && holds(bundle, root)
}

// hashedLinks has links to the system's roots, named by their files and, from those, by their hashes.
const hashedLinks = "/etc/ssl/certs"

// removeLinks removes the links to a root's file, and those to these. Debian's update-ca-certificates leaves them.
func removeLinks(file string) (removed bool) {
	entries, _ := os.ReadDir(hashedLinks) // an error: there are none
	for _, name := range []string{file, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ".pem"} {
		for _, e := range entries {
			link := filepath.Join(hashedLinks, e.Name())
			if to, err := os.Readlink(link); err == nil && to == name {
				removed = os.Remove(link) == nil || removed
			}
		}
	}
	return removed
}

// removeHooked removes a root from the cacerts to which Debian's ca-certificates-java adds the system's roots: a root
// that is removed from the system stays there.
func removeHooked(ctx context.Context, root *x509.Certificate) error {
	path, err := filepath.EvalSymlinks(filepath.Join(hashedLinks, "java/cacerts"))
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	return Store{JavaStore, path}.removeJava(ctx, root)
}

func encodePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// holds reports whether PEM data has a certificate.
func holds(data []byte, c *x509.Certificate) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, c.Raw) {
			return true
		}
	}
	return false
}

// needsRoot returns the error of a store that only root may change. sudo is not asked to: the root must go when the
// session ends, when no person may be there to type a password.
func needsRoot(path string) error {
	return hint.New(fmt.Errorf("%s needs root", path), "run the session and this command as root; or give one program "+
		"the root alone, as in: aileron ca show SESSION --pem > FILE; curl --cacert FILE")
}
