package ca

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

// needTool skips a test whose tool scripts/prepare --tests installs only where it may.
func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := findTool(name); err != nil {
		t.Skipf("%v: scripts/prepare --tests installs it where it may", err)
	}
}

// hostRoot returns the root for a host of a new session.
func hostRoot(t *testing.T, o Options) *x509.Certificate {
	t.Helper()
	o.Session, o.HostNames = "01TEST", []string{"a.example"}
	return newTest(t, o).Host().Root
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if name == "keytool" { // which its own compilers keep busy for longer
		args = append(args, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// nssStore returns a new database of NSS.
func nssStore(t *testing.T, home string) Store {
	t.Helper()
	needTool(t, "certutil")
	dir := filepath.Join(home, ".pki/nssdb")
	must.Do(t, os.MkdirAll(dir, 0o700))
	run(t, "certutil", "-N", "--empty-password", "-d", "sql:"+dir)
	return Store{NSSStore, dir}
}

// javaStore returns a new cacerts of keytool, in a form, with one root.
func javaStore(t *testing.T, form string) Store {
	t.Helper()
	needTool(t, "keytool")
	path := filepath.Join(t.TempDir(), "cacerts")
	other := filepath.Join(t.TempDir(), "other.pem")
	must.Do(t, os.WriteFile(other, newTest(t, Options{Session: "01OTHER"}).RootPEM(), 0o600))
	run(t, "keytool", "-importcert", "-noprompt", "-alias", "other", "-file", other, "-keystore", path,
		"-storetype", form, "-storepass", javaPassword)
	must.Do(t, os.Chmod(path, 0o644))
	return Store{JavaStore, path}
}

// has reports whether a store has a root, by other means than the store's own where there are some.
func has(t *testing.T, s Store, root *x509.Certificate) bool {
	t.Helper()
	if s.Kind == NSSStore {
		return strings.Contains(run(t, "certutil", "-L", "-d", "sql:"+s.Path), root.Subject.CommonName)
	}
	return strings.Contains(run(t, "keytool", "-list", "-keystore", s.Path, "-storepass", javaPassword), fileName(root))
}

// A root is added once, and removed again, be it valid still or expired; what else the store has stays.
func TestARootIsAddedAndRemoved(t *testing.T) {
	past := func() time.Time { return time.Now().Add(-13 * time.Hour) }
	for name, make := range map[string]func() Store{
		"nss":    func() Store { return nssStore(t, t.TempDir()) },
		"jks":    func() Store { return javaStore(t, "JKS") },
		"pkcs12": func() Store { return javaStore(t, "PKCS12") },
	} {
		for state, root := range map[string]*x509.Certificate{
			"valid": hostRoot(t, Options{}), "expired": hostRoot(t, Options{Now: past}),
		} {
			t.Run(name+"/"+state, func(t *testing.T) {
				s := make()
				for range 2 {
					must.Do(t, s.Add(t.Context(), root))
				}
				if !has(t, s, root) {
					t.Fatal("the store does not have the root")
				}
				for range 2 {
					must.Do(t, s.Remove(t.Context(), root))
				}
				if has(t, s, root) {
					t.Error("the store has the root still")
				}
				if s.Kind != JavaStore {
					return
				}
				data := must.Get(os.ReadFile(s.Path))(t)
				if roots, err := JavaRoots(data); err != nil || bytes.Count(roots, []byte("BEGIN")) != 1 {
					t.Errorf("the store has %d other roots, want one: %v", bytes.Count(roots, []byte("BEGIN")), err)
				}
				if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o644 {
					t.Errorf("the store has the mode %v, want that which it had: %v", info.Mode(), err)
				}
				if entries, _ := os.ReadDir(filepath.Dir(s.Path)); len(entries) != 1 {
					t.Errorf("beside the store are %v", entries)
				}
			})
		}
	}
}

// Only what [Session.Host] returns is added or removed, wherever the certificate was read from.
func TestOnlyARootForAHostIsAddedOrRemoved(t *testing.T) {
	s := newTest(t, Options{Session: "01TEST", HostNames: []string{"a.example"}})
	named := func(name string) *x509.Certificate {
		key := must.Get(newKey())(t)
		subject := subject("", "")
		subject.CommonName = name
		c, err := issue(&x509.Certificate{Subject: subject, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
			IsCA: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil, key, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	store := Store{NSSStore, t.TempDir()}
	for name, c := range map[string]*x509.Certificate{
		"the session's own root":                   s.Root(),
		"the intermediate":                         s.host.intermediate,
		"the root, signed by the session's":        s.host.cross,
		"a name that leads to another directory":   named("Aileron host root ../../../etc/cron.d/x"),
		"a name with an argument":                  named("Aileron host root -d /"),
		"no session":                               named("Aileron host root "),
		"another CA":                               named("ACME Root"),
		"a name in lower case, which no id has":    named("Aileron host root 01test"),
		"a name that is longer than an id":         named("Aileron host root " + strings.Repeat("0", 27)),
		"a name that goes on with a line of a row": named("Aileron host root 01TEST\nx"),
	} {
		for doing, err := range map[string]error{"add": store.Add(t.Context(), c), "remove": store.Remove(t.Context(), c)} {
			if err == nil || !strings.Contains(err.Error(), "for this host's programs") {
				t.Errorf("%s %s: %v", doing, name, err)
			}
		}
		if _, err := ParseHostRoot(encodePEM(c), "01TEST", time.Now()); err == nil {
			t.Errorf("%s is read as a root for a host", name)
		}
	}
}

func TestARootIsReadForItsSessionAndItsTime(t *testing.T) {
	root := hostRoot(t, Options{})
	data := encodePEM(root)
	for _, c := range []struct {
		name, session string
		data          []byte
		now           time.Time
		reason        string
	}{
		{"its own", "01TEST", data, time.Now(), ""},
		{"another session's", "01OTHER", data, time.Now(), "that of the session 01TEST"},
		{"after its end", "01TEST", data, time.Now().Add(13 * time.Hour), "has ended"},
		{"one that lives longer", "01TEST", data, time.Now().Add(-time.Hour), "later than in 12h"},
		{"two certificates", "01TEST", append(bytes.Clone(data), data...), time.Now(), "not one certificate"},
		{"a key", "01TEST", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"}), time.Now(), "not one certificate"},
		{"nothing", "01TEST", nil, time.Now(), "not one certificate"},
	} {
		_, err := ParseHostRoot(c.data, c.session, c.now)
		if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %q", c.name, err, c.reason)
		}
	}
}

// A store that cannot be changed is an error with the reason and the remedy, and is as it was afterwards.
func TestAStoreThatCannotBeChangedIsNamed(t *testing.T) {
	root := hostRoot(t, Options{})
	for name, c := range map[string]struct {
		make   func(t *testing.T) Store
		reason string
	}{
		"a database that another process has locked": {func(t *testing.T) Store {
			s := nssStore(t, t.TempDir())
			lockDatabase(t, filepath.Join(s.Path, nssDatabase))
			return s
		}, "another process holds its lock"},
		"a database with a password": {func(t *testing.T) Store {
			needTool(t, "certutil")
			s := Store{NSSStore, t.TempDir()}
			file := filepath.Join(t.TempDir(), "password")
			must.Do(t, os.WriteFile(file, []byte("hunter2\n"), 0o600))
			run(t, "certutil", "-N", "-d", "sql:"+s.Path, "-f", file)
			return s
		}, "has a password"},
		"a database that is none": {func(t *testing.T) Store {
			s := nssStore(t, t.TempDir())
			must.Do(t, os.WriteFile(filepath.Join(s.Path, nssDatabase), []byte("garbage, and more of it"), 0o600))
			return s
		}, "is damaged"},
		"a link that came in its place": {func(t *testing.T) Store {
			s := nssStore(t, t.TempDir())
			moved := filepath.Join(t.TempDir(), "moved")
			must.Do(t, os.Rename(s.Path, moved))
			must.Do(t, os.Symlink(moved, s.Path))
			return s
		}, "symbolic link"},
		"a cacerts with another password": {func(t *testing.T) Store {
			s := javaStore(t, "JKS")
			run(t, "keytool", "-storepasswd", "-keystore", s.Path, "-storepass", javaPassword, "-new", "another")
			return s
		}, "password is not changeit"},
		"a cacerts that is cut off": {func(t *testing.T) Store {
			s := javaStore(t, "JKS")
			must.Do(t, os.Truncate(s.Path, 100))
			return s
		}, "damaged"},
		"a kind that is not known": {func(t *testing.T) Store { return Store{"windows", t.TempDir()} }, "is not known"},
		"another directory as the system's": {func(t *testing.T) Store {
			return Store{SystemStore, filepath.Join(t.TempDir(), "none")} // nothing is run if it is taken for one
		}, "not the store of this system"},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.make(t)
			before, _ := os.ReadFile(s.Path)
			err := s.Add(t.Context(), root)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("Add: %v, want %q", err, c.reason)
			}
			if s.Kind != "windows" && s.Kind != SystemStore && !strings.Contains(c.reason, "link") && hint.Of(err) == "" {
				t.Errorf("Add: %v has no hint", err)
			}
			if after, _ := os.ReadFile(s.Path); !bytes.Equal(before, after) {
				t.Error("the store has changed")
			}
		})
	}
}

// lockDatabase holds the lock of an SQLite database that a writer has, until the test ends.
func lockDatabase(t *testing.T, path string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	t.Cleanup(func() { _ = f.Close() })
	// The bytes that SQLite locks: those of a pending, of a reserved, and of shared locks (os_unix.c).
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 0x40000000, Len: 512}
	must.Do(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock))
}

// A store that is gone, with the profile or the Java that it was part of, has no root.
func TestAStoreThatIsGoneHasNoRoot(t *testing.T) {
	root := hostRoot(t, Options{})
	for _, kind := range StoreKinds() {
		if err := (Store{kind, filepath.Join(t.TempDir(), "gone")}).Remove(t.Context(), root); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	s := nssStore(t, t.TempDir())
	must.Do(t, os.Remove(filepath.Join(s.Path, nssDatabase)))
	if err := s.Remove(t.Context(), root); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.Path, nssDatabase)); err == nil {
		t.Error("a database was made")
	}
}

// Databases are found where browsers have them, by whatever name; links are resolved, and a missing one is named.
func TestTheDatabasesOfBrowsersAreFound(t *testing.T) {
	needTool(t, "certutil")
	home := filepath.Join(t.TempDir(), "a [home] *")
	nothing := findNSS(home)
	if len(nothing) != 1 || nothing[0].Err == nil || !strings.Contains(hint.Of(nothing[0].Err), "certutil -N") {
		t.Errorf("a home without a browser: %+v", nothing)
	}
	chromium := nssStore(t, home)
	for _, place := range []string{".mozilla/firefox/abcd.default", "snap/firefox/common/.mozilla/firefox/efgh.default"} {
		dir := filepath.Join(home, place)
		must.Do(t, os.MkdirAll(filepath.Dir(dir), 0o700))
		must.Do(t, os.CopyFS(dir, os.DirFS(chromium.Path)))
	}
	elsewhere := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.CopyFS(elsewhere, os.DirFS(chromium.Path)))
	link := filepath.Join(home, ".mozilla/firefox/link")
	must.Do(t, os.Symlink(elsewhere, link))
	must.Do(t, os.Mkdir(filepath.Join(home, ".mozilla/firefox/Crash Reports"), 0o700))
	var paths []string
	for _, f := range findNSS(home) {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Store, f.Err)
		}
		if (f.Link != "") != (f.Path == elsewhere) {
			t.Errorf("%s was found by the link %q", f.Path, f.Link)
		}
		paths = append(paths, f.Path)
	}
	want := []string{chromium.Path, filepath.Join(home, ".mozilla/firefox/abcd.default"), elsewhere,
		filepath.Join(home, "snap/firefox/common/.mozilla/firefox/efgh.default")}
	if !slices.Equal(paths, want) {
		t.Errorf("found %q, want %q", paths, want)
	}
}

func TestTheJavaOfJAVA_HOMEIsFound(t *testing.T) {
	home := t.TempDir()
	for _, place := range []string{"lib", "jre/lib"} {
		dir := filepath.Join(home, place, "security")
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "cacerts"), nil, 0o600))
	}
	found := findJava(t.TempDir(), home)
	if len(found) < 2 || found[0].Path != filepath.Join(home, "lib/security/cacerts") || found[0].Err != nil {
		t.Errorf("found %+v", found)
	}
}

// Root changes nothing that another user could replace, and nothing of another user.
func TestAStoreIsNamedByItsAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must.Do(t, os.Mkdir("store", 0o700))
	must.Do(t, os.Symlink("store", "link"))
	for path, reason := range map[string]string{
		"store": "store is not an absolute path", filepath.Join(dir, "link"): "link is a symbolic link now",
	} {
		if err := writable(path); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", path, err, reason)
		}
	}
}

func TestAStoreThatOthersCouldReplaceIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of other users")
	}
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "store")
	must.Do(t, os.MkdirAll(path, 0o755))
	must.Do(t, writable(path))
	for name, c := range map[string]struct {
		change, back func() error
		reason       string
	}{
		"a store of another user": {func() error { return os.Chown(path, 65534, -1) },
			func() error { return os.Chown(path, 0, -1) }, "belongs to the user 65534"},
		"a directory of another user": {func() error { return os.Chown(dir, 65534, -1) },
			func() error { return os.Chown(dir, 0, -1) }, "another user could replace"},
		"a directory that all may write": {func() error { return os.Chmod(dir, 0o777) },
			func() error { return os.Chmod(dir, 0o755) }, "another user could replace"},
	} {
		must.Do(t, c.change())
		if err := writable(path); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
		must.Do(t, c.back())
	}
}

// A tool has no terminal, an end, and no environment that would change what it prints.
func TestAToolIsEndedWithItsContext(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ -z \"$JAVA_TOOL_OPTIONS\" ] || exit 9\n(: >/dev/tty) || echo no terminal\n: >" + dir +
		"/begun\nexec tail -f /dev/null\n"
	tool := filepath.Join(dir, "tool")
	must.Do(t, os.WriteFile(tool, []byte(script), 0o700))
	t.Setenv("JAVA_TOOL_OPTIONS", "-version")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				return
			}
		}
	}()
	out, err := runTool(ctx, nil, tool)
	if err == nil || !strings.Contains(err.Error(), "canceled") || !strings.Contains(string(out), "no terminal") {
		t.Errorf("%q, %v", out, err)
	}
}
