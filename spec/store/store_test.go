package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

const manifest = `[connector]
name = "github://acme/tracker"
version = "1.2.0"

[capabilities.network]
hosts = ["api.tracker.example:443"]
`

const connectorSpec = `{
 "schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "operations": [
  {"name": "issues.get", "method": "GET", "path": "/v1/{id}", "hosts": ["api.tracker.example"]}]}]}`

// source is a connector's directory; later files win.
func source(t *testing.T, version string, extra map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		spec.ManifestFile: strings.Replace(manifest, "1.2.0", version, 1),
		spec.SpecFile:     strings.Replace(connectorSpec, "1.2.0", version, 1),
	}
	for name, data := range extra {
		files[name] = data
	}
	for name, data := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	return dir
}

func open(t *testing.T) *Store {
	t.Helper()
	return must.Get(Open(filepath.Join(t.TempDir(), "store")))(t)
}

func install(t *testing.T, s *Store, src string) Installed {
	t.Helper()
	return must.Get(s.Install(context.Background(), src, InstallOptions{}))(t)
}

func (s *Store) path(hash string) string {
	return filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:"))
}

func TestInstalledConnectorIsFoundByHashAndName(t *testing.T) {
	s := open(t)
	in := install(t, s, source(t, "1.2.0", nil))
	if in.Already || in.Connector.FQN != "github://acme/tracker" || !IsHash(in.Connector.Hash) {
		t.Errorf("Install = %+v", in)
	}
	c, err := s.Load(in.Connector.Hash)
	if err != nil || c.Hash != in.Connector.Hash || len(c.Tools) != 1 {
		t.Errorf("Load = %+v, %v", c, err)
	}
	if again := install(t, s, source(t, "1.2.0", map[string]string{"README.md": "not hashed"})); !again.Already {
		t.Error("the same bytes are installed twice")
	}
	if named := install(t, s, "github://acme/tracker@1.2.0"); !named.Already || named.Connector.Hash != in.Connector.Hash {
		t.Errorf("Install by name = %+v", named)
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if err != nil || len(left) != 1 || left[0].Name() != ".lock" {
		t.Errorf("tmp holds %v, %v", left, err)
	}
	info, err := os.Stat(filepath.Join(s.path(in.Connector.Hash), spec.SpecFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the spec's mode is %v, %v", info.Mode(), err)
	}
}

func TestHighestVersionIsCurrent(t *testing.T) {
	s := open(t)
	for _, step := range []struct{ install, remove, want string }{
		{install: "1.8.0-rc.1", want: "1.8.0-rc.1"}, // there is nothing else
		{install: "1.9.0", want: "1.9.0"},
		{install: "1.10.0", want: "1.10.0"},
		{install: "2.0.0-rc.1", want: "1.10.0"},
		{install: "1.10.0+build", want: "1.10.0+build"},
		{remove: "1.10.0+build", want: "1.10.0"},
		{remove: "1.10.0", want: "1.9.0"},
		{remove: "1.9.0", want: "2.0.0-rc.1"},
	} {
		if step.install != "" {
			install(t, s, source(t, step.install, nil))
		} else if gone, err := s.Remove("github://acme/tracker", step.remove, nil); err != nil || len(gone) != 1 {
			t.Fatal(gone, err)
		}
		if current, errs := s.Current(); len(errs) > 0 || len(current) != 1 || current[0].Version != step.want {
			t.Errorf("after %+v: %v, %v", step, current, errs)
		}
	}
	if gone, err := s.Remove("github://acme/tracker", "", nil); err != nil || len(gone) != 2 {
		t.Errorf("Remove = %v, %v", gone, err)
	}
	if _, err := s.Remove("github://acme/tracker", "", nil); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Remove = %v, want ErrNotInstalled", err)
	}
	if entries, err := s.List(); err != nil || len(entries) != 0 {
		t.Errorf("List() = %v, %v", entries, err)
	}
}

// Case SPC-01: a connector that was changed after its installation is not used,
// and the file is named.
func TestTamperedConnectorIsNotUsed(t *testing.T) {
	onFile := func(name string, do func(file string) error) func(dir string) error {
		return func(dir string) error { return do(filepath.Join(dir, name)) }
	}
	for _, c := range []struct {
		name string
		do   func(dir string) error
		want string
	}{
		{"a byte of the spec", onFile(spec.SpecFile, flip), spec.SpecFile + " has other bytes"},
		{"a byte of the manifest", onFile(spec.ManifestFile, flip), "manifest.toml has other bytes"},
		{"a byte of the binary", onFile("connector.wasm", flip), "connector.wasm has other bytes"},
		{"a binary more", onFile("connector.bin", func(file string) error { return os.WriteFile(file, nil, 0o600) }),
			"connector.bin was added"},
		{"a file less", onFile(spec.ManifestFile, os.Remove), "manifest.toml is missing"},
		{"a symlink to the same bytes", onFile(spec.SpecFile, func(file string) error {
			return errors.Join(os.Rename(file, file+".moved"), os.Symlink(spec.SpecFile+".moved", file))
		}), spec.SpecFile + ": it is not a regular file"},
		{"a pipe", onFile(spec.SpecFile, func(file string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600))
		}), spec.SpecFile + ": it is not a regular file"},
		{"the directory is a link", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.Symlink(dir+".moved", dir))
		}, "it is not a directory"},
		{"a file that is too large", onFile(spec.SpecFile, func(file string) error { return os.Truncate(file, maxText+1) }),
			"larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			hash := install(t, s, source(t, "1.2.0", map[string]string{"connector.wasm": "code"})).Connector.Hash
			if current, errs := s.Current(); len(current) != 1 || len(errs) > 0 { // it is known from now on
				t.Fatal(current, errs)
			}
			must.Do(t, c.do(s.path(hash)))
			_, err := s.Load(hash)
			var tampered *TamperedError
			if !errors.As(err, &tampered) || !strings.Contains(err.Error(), c.want) ||
				tampered.ErrorClass() != "hash_mismatch" {
				t.Errorf("Load = %v, want a TamperedError with %q", err, c.want)
			}
			current, errs := s.Current()
			if len(current) != 0 || !slices.ContainsFunc(errs, func(err error) bool {
				return strings.HasPrefix(err.Error(), "github://acme/tracker@1.2.0: ") && strings.Contains(err.Error(), c.want)
			}) {
				t.Errorf("Current() = %v, %v", current, errs)
			}
			// Installing it again repairs it.
			if in := install(t, s, source(t, "1.2.0", map[string]string{"connector.wasm": "code"})); in.Already {
				t.Error("a broken copy counts as installed")
			}
			if _, err := s.Load(hash); err != nil {
				t.Errorf("after installing it again, Load = %v", err)
			}
		})
	}
}

func flip(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(name, data, 0o600)
}

// The index is a cache: without it everything works, and it comes back.
func TestIndexIsRebuilt(t *testing.T) {
	s := open(t)
	hash := install(t, s, source(t, "1.2.0", nil)).Connector.Hash
	for _, harm := range []func() error{
		func() error { return os.Remove(s.indexFile(hash)) },
		func() error {
			return os.WriteFile(s.indexFile(hash), []byte(`{"fqn": "hub://evil/x", "hash": "`+hash+`"}`), 0o600)
		},
		func() error { return os.WriteFile(s.indexFile(hash), []byte("\x00"), 0o600) },
	} {
		must.Do(t, harm())
		entries, err := s.List()
		if err != nil || len(entries) != 1 || entries[0].FQN != "github://acme/tracker" {
			t.Errorf("List() = %v, %v", entries, err)
		}
		if m := s.readCache(hash); m.FQN != "github://acme/tracker" || len(m.Files) != 2 {
			t.Errorf("the index has %+v", m)
		}
	}
	// Broken and forgotten, it can still be removed by its hash.
	must.Do(t, errors.Join(os.Remove(s.indexFile(hash)), flip(filepath.Join(s.path(hash), spec.SpecFile))))
	if gone, err := s.Remove(hash, "", nil); err != nil || len(gone) != 1 {
		t.Errorf("Remove(hash) = %v, %v", gone, err)
	}
}

func TestFilesThatCannotBeWrittenLeaveNothing(t *testing.T) {
	s := open(t)
	must.Do(t, os.MkdirAll(filepath.Join(s.dir, "tmp"), 0o700))
	put, _, err := s.prepare("sha256:00", contents{"manifest.toml": nil, "no/such/directory": nil})
	if err == nil || put != nil {
		t.Errorf("prepare: %v", err)
	}
	if left := must.Get(os.ReadDir(filepath.Join(s.dir, "tmp")))(t); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestAVersionDoesNotChange(t *testing.T) {
	s := open(t)
	hash := install(t, s, source(t, "1.2.0", nil)).Connector.Hash
	other := source(t, "1.2.0", map[string]string{spec.SpecFile: connectorSpec + "\n"})
	_, err := s.Install(context.Background(), other, InstallOptions{})
	var version *VersionError
	if !errors.As(err, &version) || version.Entry.Hash != hash || version.ErrorClass() != "hash_mismatch" {
		t.Errorf("Install = %v, want a VersionError", err)
	}
	// Brought in by hand, neither of the two is used.
	must.Do(t, os.CopyFS(s.path(version.New), os.DirFS(other)))
	if current, errs := s.Current(); len(current) != 0 || len(errs) != 2 {
		t.Errorf("Current() = %v, %v", current, errs)
	}
}

// otherHash is the hash of no connector.
var otherHash = "sha256:" + strings.Repeat("0", 64)

func TestAnotherHashThanExpectedIsRefused(t *testing.T) {
	s := open(t)
	_, err := s.Install(context.Background(), source(t, "1.2.0", nil), InstallOptions{Hash: otherHash})
	var hash *HashError
	if !errors.As(err, &hash) || hash.ErrorClass() != "hash_mismatch" {
		t.Errorf("Install = %v, want a HashError", err)
	}
	if entries, _ := s.List(); len(entries) != 0 {
		t.Errorf("List() = %v", entries)
	}
}

// An installed version is found by its name, and its hash is compared all the same.
func TestAnotherHashThanTheInstalledIsRefused(t *testing.T) {
	s := open(t)
	there := must.Get(s.Install(t.Context(), source(t, "1.2.0", nil), InstallOptions{}))(t)
	const name = "github://acme/tracker@1.2.0"
	again, err := s.Install(t.Context(), name, InstallOptions{Hash: there.Connector.Hash})
	if err != nil || !again.Already {
		t.Errorf("Install(%s) = %+v, %v; want the installed connector", name, again, err)
	}
	var hash *HashError
	_, err = s.Install(t.Context(), name, InstallOptions{Hash: otherHash})
	if !errors.As(err, &hash) || hash.Got != there.Connector.Hash {
		t.Errorf("Install(%s) = %v, want a HashError", name, err)
	}
}

func TestNothingIsFetched(t *testing.T) {
	s := open(t)
	for src, want := range map[string]string{
		"github://acme/tracker@1.2.0": "it is not installed",
		"github://acme/tracker":       "name its version",
		"https://acme.example/x.tgz":  "does not begin with github://",
	} {
		_, err := s.Install(context.Background(), src, InstallOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Install(%s) = %v, want %q", src, err, want)
		}
	}
}

func TestTheBinaryIsWhatTheManifestDeclares(t *testing.T) {
	declare := func(hash string) map[string]string {
		const version = `"1.2.0"`
		declared := strings.Replace(manifest, version, version+"\nprovenance_hash = \""+hash+`"`, 1)
		return map[string]string{"connector.wasm": "code", spec.ManifestFile: declared}
	}
	if _, err := Read(source(t, "1.2.0", declare(sha256Digest([]byte("code"))))); err != nil {
		t.Errorf("Read = %v", err)
	}
	var hash *HashError
	_, err := Read(source(t, "1.2.0", declare(sha256Digest([]byte("other")))))
	if !errors.As(err, &hash) || hash.What != "connector.wasm" {
		t.Errorf("Read = %v, want a HashError of connector.wasm", err)
	}
	if _, err := Read(source(t, "1.2.0", map[string]string{"connector.wasm": "a", "connector.bin": "b"})); err == nil {
		t.Error("two binaries are accepted")
	}
}

// The hash is a promise to publishers: it must not change by accident.
func TestHashIsStable(t *testing.T) {
	c := contents{spec.ManifestFile: []byte("m"), spec.SpecFile: []byte("s")}
	if got := c.hash(); got != goldenHash {
		t.Errorf("hash() = %s, want %s", got, goldenHash)
	}
	c[signatureFile] = []byte("x")
	if got := c.hash(); got != goldenHash {
		t.Error("the signature is hashed")
	}
	for _, other := range []contents{
		{spec.ManifestFile: []byte("ms"), spec.SpecFile: []byte("")},
		{spec.ManifestFile: []byte("m"), spec.SpecFile: []byte("s"), "connector.wasm": nil},
		{spec.ManifestFile: []byte("m"), spec.SpecFile: []byte("s"), "connector.bin": nil},
	} {
		if other.hash() == goldenHash {
			t.Errorf("%v has the same hash", other)
		}
	}
}

const goldenHash = "sha256:3a9c4287f1b5d5ced6ebccdb781959b14f6ce34189112827b7d3da2bbd7b88bd"

func TestFingerprintFollowsTheFiles(t *testing.T) {
	s := open(t)
	print := func() string {
		t.Helper()
		return must.Get(s.Fingerprint())(t)
	}
	empty := print()
	hash := install(t, s, source(t, "1.2.0", nil)).Connector.Hash
	installed := print()
	if installed == empty || print() != installed {
		t.Error("an installation does not change the fingerprint, or nothing does")
	}
	file := filepath.Join(s.path(hash), spec.SpecFile)
	info := must.Get(os.Stat(file))(t)
	must.Do(t, errors.Join(flip(file), os.Chtimes(file, info.ModTime(), info.ModTime())))
	if print() == installed {
		t.Error("a changed byte with an old time does not change the fingerprint")
	}
	must.Get(s.Remove(hash, "", nil))(t)
	if print() == installed {
		t.Error("a removal does not change the fingerprint")
	}
}

func TestConcurrentInstallationsAgree(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	dirs := []string{source(t, "1.2.0", nil), source(t, "1.3.0", nil)}
	for i := range errs {
		wg.Go(func() {
			other, err := Open(s.dir)
			if err == nil {
				_, err = other.Install(context.Background(), dirs[i%2], InstallOptions{})
			}
			if err == nil && i%4 == 3 {
				_, err = other.List()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if entries, err := s.List(); err != nil || len(entries) != 2 || entries[0].Err != nil || entries[1].Err != nil {
		t.Errorf("List() = %v, %v", entries, err)
	}
}

// A file system without locks, such as NFS without its lock daemon.
func TestAStoreWithoutFileLocksIsNotChanged(t *testing.T) {
	s := open(t)
	installed := install(t, s, source(t, "1.2.0", nil))
	for _, errno := range []syscall.Errno{syscall.ENOLCK, syscall.EOPNOTSUPP} {
		s.flock = func(int, int) error { return errno } // a fake of flock(2)
		if _, err := s.Install(context.Background(), source(t, "1.3.0", nil), InstallOptions{}); !errors.Is(err, errno) {
			t.Errorf("install: %v, want %v", err, errno)
		}
		if _, err := s.Remove("github://acme/tracker", "", nil); !errors.Is(err, errno) {
			t.Errorf("remove: %v, want %v", err, errno)
		}
	}
	if entries, err := s.List(); err != nil || len(entries) != 1 || entries[0].Hash != installed.Connector.Hash {
		t.Errorf("the store has %v, %v", entries, err)
	}
}

// Versions do not change between the connectors of one call either, and those before
// the one that fails are installed.
func TestInstallAllStopsAtAVersionWithOtherBytes(t *testing.T) {
	s := open(t)
	first := source(t, "1.2.0", nil)
	other := source(t, "1.2.0", map[string]string{spec.SpecFile: connectorSpec + "\n"})
	var recorded int
	all, err := s.InstallAll(t.Context(), []Source{{Src: first}, {Src: first}, {Src: other}},
		func(_ *spec.Connector, install func() error) error { recorded++; return install() })
	var version *VersionError
	if !errors.As(err, &version) || len(all) != 2 || all[0].Already || !all[1].Already || recorded != 1 {
		t.Errorf("%d are installed, %d changes were recorded: %v; want 2, the second one already, 1 and a VersionError",
			len(all), recorded, err)
	}
	if current, faults := s.Current(); len(current) != 1 || current[0].Hash != all[0].Connector.Hash || len(faults) > 0 {
		t.Errorf("%d connectors are installed: %v", len(current), faults)
	}
}

// A connector that was changed is installed again; one that could not be read
// may be as it was.
func TestTheHintDependsOnWhatIsKnown(t *testing.T) {
	changed, unread := &HashError{}, &UnreadableError{Err: syscall.EACCES}
	for _, c := range []struct {
		err    error
		reason string
		hint   string
	}{
		{changed, "", "install the connector again"},
		{unread, "connector_unreadable", "nothing is known to be changed: check the rights on that file"},
		{&ListError{syscall.EIO}, "store_unreadable", "nothing is known to be changed: check the disk"},
		{&ListError{errors.New("no names")}, "store_unreadable",
			"nothing is known to be changed: check the disk and the rights on the home"},
		{errors.Join(unread, changed), "connector_unreadable", "install the connector again"},
	} {
		err := fmt.Errorf("verify: %w", c.err)
		if reason, is := Unreadable(err); reason != c.reason || is != (c.reason != "") {
			t.Errorf("Unreadable(%v) = %q, %v; want %q", c.err, reason, is, c.reason)
		}
		if got := hint.Of(Hint(err)); !strings.HasPrefix(got, c.hint) {
			t.Errorf("the hint of %v is %q, want %q", c.err, got, c.hint)
		}
	}
}

// The error names the connector by the beginning of its hash, and the file if it is one.
func TestAnUnreadableConnectorIsNamed(t *testing.T) {
	hash := "sha256:" + strings.Repeat("a", 64)
	const what = "the installed connector sha256:aaaaaaaaaaaa could not be read: "
	for _, c := range []struct {
		err  UnreadableError
		want string
	}{
		{UnreadableError{Hash: hash, File: "a.json", Err: fs.ErrPermission}, what + "a.json: permission denied"},
		{UnreadableError{Hash: hash, Err: fs.ErrPermission}, what + "permission denied"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("Error() = %q, want %q", got, c.want)
		}
	}
}
