package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

const passphrase = "correct horse battery"
const secretText = "tok-9f2c/41+aaXYZ=="

// cheap is the work factor of these tests' vaults: scrypt is slow on purpose,
// and under the race detector slower by ten.
const cheap = 10

// open opens a vault as these tests do. The vault of a release is vault.Open's.
func open(dir string) *vault.Vault { return vault.Open(dir, vault.TestOnlyWorkFactor(cheap)) }

// sample is one vault's files, made once.
var sample = sync.OnceValue(func() map[string][]byte {
	dir, err := os.MkdirTemp("", "aileron-vault-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := open(filepath.Join(dir, "vault")).Init([]byte(passphrase)); err != nil {
		panic(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"identity.age", "recipient"} {
		raw, err := os.ReadFile(filepath.Join(dir, "vault", name))
		if err != nil {
			panic(err)
		}
		files[name] = raw
	}
	return files
})

// newVault is a vault on disk, locked, and its directory.
func newVault(t *testing.T) (*vault.Vault, string) {
	t.Helper()
	home := t.TempDir()
	chmod(t, home, 0o700)
	dir := filepath.Join(home, "vault")
	must.Do(t, os.Mkdir(dir, 0o700))
	for name, raw := range sample() {
		put(t, filepath.Join(dir, name), raw)
	}
	return open(dir), dir
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, data, 0o600))
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.Chmod(path, mode))
}

func unlock(t *testing.T, v *vault.Vault) {
	t.Helper()
	must.Do(t, v.Unlock([]byte(passphrase)))
}

func secret(t *testing.T, s string) vault.Secret {
	t.Helper()
	return must.Get(vault.NewSecret([]byte(s)))(t)
}

func tracker(identity string) vault.Binding {
	return vault.Binding{
		Name: "bearer/tracker/" + identity, Kind: "bearer", Connector: "github://acme/tracker", Identity: identity,
	}
}

func TestVaultLife(t *testing.T) {
	home := t.TempDir()
	v := open(filepath.Join(home, "vault"))
	if v.Initialised() || v.Unlocked() {
		t.Error("a vault that was never made is there")
	}
	if err := v.Unlock([]byte(passphrase)); !errors.Is(err, vault.ErrNotInitialised) {
		t.Errorf("unlocking it returns %v", err)
	}
	for _, p := range []string{"", "1234567", strings.Repeat("x", vault.MaxPassphrase+1)} {
		if err := v.Init([]byte(p)); err == nil {
			t.Errorf("a passphrase of %d bytes is taken", len(p))
		}
	}
	must.Do(t, v.Init([]byte(passphrase)))
	if err := v.Init([]byte(passphrase)); !errors.Is(err, vault.ErrExists) {
		t.Errorf("a second Init returns %v", err)
	}
	must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
	must.Do(t, v.ChangePassphrase([]byte("another passphrase")))
	v.Lock()
	if _, err := v.Credential("bearer/tracker/work"); !errors.Is(err, vault.ErrLocked) {
		t.Errorf("a locked vault returns %v", err)
	}
	if err := v.ChangePassphrase([]byte("another passphrase")); !errors.Is(err, vault.ErrLocked) {
		t.Errorf("a locked vault's passphrase changes: %v", err)
	}
	if err := v.Unlock([]byte(passphrase)); !errors.Is(err, vault.ErrWrongPassphrase) {
		t.Errorf("the old passphrase returns %v", err)
	}
	must.Do(t, v.Unlock([]byte("another passphrase")))
	if c, err := v.Credential("bearer/tracker/work"); err != nil || c.Secret.Reveal() != secretText || c.Kind != "bearer" {
		t.Errorf("the credential is %+v, %v", c, err)
	}
}

// SECURITY VLT-02: whatever is wrong with a passphrase, the error is the same.
func TestWrongPassphraseHasNoDetail(t *testing.T) {
	v, _ := newVault(t)
	for _, p := range []string{"", "x", passphrase + " ", strings.Repeat("x", 1<<20)} {
		if err := v.Unlock([]byte(p)); err == nil || err.Error() != vault.ErrWrongPassphrase.Error() {
			t.Errorf("a passphrase of %d bytes returns %v", len(p), err)
		}
	}
	if v.Unlocked() {
		t.Error("it is unlocked all the same")
	}
}

// SECURITY VLT-04: neither a downgrade nor an hour of work is believed.
func TestWorkFactorIsBounded(t *testing.T) {
	_, dir := newVault(t)
	honest := sample()["identity.age"]
	for _, factor := range []int{1, cheap, 15, 21, 30} {
		var out bytes.Buffer
		if factor < 18 {
			r := must.Get(age.NewScryptRecipient(passphrase))(t)
			r.SetWorkFactor(factor)
			w := must.Get(age.Encrypt(&out, r))(t)
			_, _ = w.Write([]byte("AGE-SECRET-KEY-1"))
			w.Close()
		} else { // too costly to make; only its header is read
			out.Write(bytes.Replace(honest, fmt.Appendf(nil, " %d\n", cheap), fmt.Appendf(nil, " %d\n", factor), 1))
		}
		put(t, filepath.Join(dir, "identity.age"), out.Bytes())
		err := vault.Open(dir).Unlock([]byte(passphrase))
		want := fmt.Sprintf("the work factor \"%d\", and only 16 to 20", factor)
		if err == nil || errors.Is(err, vault.ErrWrongPassphrase) || !strings.Contains(err.Error(), want) {
			t.Errorf("the work factor %d returns %v, want %q", factor, err, want)
		}
	}
}

// Without the option of the tests, a vault has its full cost: a vault that was made
// with the option is refused without it, and not the other way round.
func TestOnlyTestsHaveCheapVaults(t *testing.T) {
	home := t.TempDir()
	chmod(t, home, 0o700)
	dir := filepath.Join(home, "vault")
	must.Do(t, vault.Open(dir).Init([]byte(passphrase)))
	raw, err := os.ReadFile(filepath.Join(dir, "identity.age"))
	if err != nil || !regexp.MustCompile(`(?m)^-> scrypt \S+ 17$`).Match(raw) {
		t.Errorf("a new vault is not sealed with the work factor 17: %.80q, %v", raw, err)
	}
	unlock(t, open(dir))

	_, dir = newVault(t)
	unlock(t, open(dir))
	err = vault.Open(dir).Unlock([]byte(passphrase))
	if err == nil || !strings.Contains(err.Error(), `the work factor "10"`) {
		t.Errorf("a vault that a test made cheap is opened without the option: %v", err)
	}
}

func TestBrokenIdentityIsNotAWrongPassphrase(t *testing.T) {
	_, dir := newVault(t)
	whole := sample()["identity.age"]
	for _, raw := range [][]byte{nil, []byte("hello"), whole[:len(whole)-3]} {
		put(t, filepath.Join(dir, "identity.age"), raw)
		err := open(dir).Unlock([]byte(passphrase))
		if err == nil || errors.Is(err, vault.ErrWrongPassphrase) ||
			!strings.Contains(err.Error(), "identity.age is broken") {
			t.Errorf("an identity of %d bytes returns %v", len(raw), err)
		}
	}
}

// With an exchanged recipient, secrets would be sealed to another identity.
func TestExchangedRecipientIsRefused(t *testing.T) {
	v, dir := newVault(t)
	unlock(t, v)
	other := must.Get(age.GenerateX25519Identity())(t)
	put(t, filepath.Join(dir, "recipient"), []byte(other.Recipient().String()+"\n"))
	must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
	if _, err := v.Credential("bearer/tracker/work"); err != nil {
		t.Errorf("an unlocked vault sealed to the exchanged recipient: %v", err)
	}
	if err := open(dir).Unlock([]byte(passphrase)); err == nil || !strings.Contains(err.Error(), "recipient") {
		t.Errorf("unlocking returns %v", err)
	}
}

// A locked vault seals to the recipient on disk. What the exchange of it can reach ends at the next unlock.
func TestALockedVaultBinds(t *testing.T) {
	v, dir := newVault(t)
	if err := v.Bind(tracker("work"), secret(t, secretText)); err != nil || v.Unlocked() {
		t.Fatalf("binding in a locked vault: %v, unlocked %v", err, v.Unlocked())
	}
	must.Do(t, v.Rebind("bearer/tracker/work", "", secret(t, secretText+"2")))
	unlock(t, v)
	if c, err := v.Credential("bearer/tracker/work"); err != nil || c.Secret.Reveal() != secretText+"2" {
		t.Errorf("the binding does not hold what was bound: %v", err)
	}
	at := filepath.Join(dir, "recipient")
	put(t, at, []byte("age1nonsense\n"))
	locked := open(dir)
	if err := locked.Bind(tracker("home"), secret(t, secretText)); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("with a broken recipient binding returns %v", err)
	}
}

func TestAMissingRecipientIsWrittenAnewByAnUnlock(t *testing.T) {
	v, dir := newVault(t)
	at := filepath.Join(dir, "recipient")
	before := must.Get(os.ReadFile(at))(t)
	must.Do(t, os.Remove(at))
	if err := v.Bind(tracker("work"), secret(t, secretText)); err == nil ||
		!strings.Contains(err.Error(), "aileron vault unlock") {
		t.Errorf("without a recipient binding returns %v", err)
	}
	if err := v.Unlock([]byte("not the passphrase")); err == nil {
		t.Error("a wrong passphrase unlocks")
	}
	if _, err := os.Lstat(at); err == nil {
		t.Error("a wrong passphrase writes a recipient")
	}
	unlock(t, v)
	if after, err := os.ReadFile(at); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the recipient is %q, %v; want %q", after, err, before)
	}
}

func TestAKeyOpensItsOwnVaultOnly(t *testing.T) {
	v, dir := newVault(t)
	if _, err := v.Key(); !errors.Is(err, vault.ErrLocked) {
		t.Errorf("a locked vault returns %v instead of its key", err)
	}
	unlock(t, v)
	must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
	key := must.Get(v.Key())(t)
	must.Do(t, v.ChangePassphrase([]byte("another passphrase")))
	again := open(dir)
	must.Do(t, again.UnlockWithKey(key))
	if c, err := again.Credential("bearer/tracker/work"); err != nil || c.Secret.Reveal() != secretText {
		t.Errorf("with the key the credential is %v", err)
	}
	other := open(filepath.Join(t.TempDir(), "vault"))
	must.Do(t, other.Init([]byte(passphrase)))
	other.Lock()
	for _, wrong := range [][]byte{key, nil, []byte("AGE-SECRET-KEY-1"), key[:len(key)-1]} {
		err := other.UnlockWithKey(wrong)
		if err == nil || other.Unlocked() || strings.Contains(err.Error(), "AGE-SECRET") {
			t.Errorf("the key of another vault returns %v", err)
		}
	}
	// A key must not restore a recipient: it may be of a vault that was here before.
	must.Do(t, os.Remove(filepath.Join(dir, "recipient")))
	if err := open(dir).UnlockWithKey(key); err == nil {
		t.Error("without a recipient to compare it with, a key opens the vault")
	}
}

func TestLockForAllStopsEveryProcess(t *testing.T) {
	v, dir := newVault(t)
	unlock(t, v)
	must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
	other := open(dir)
	before := fingerprint(t, v)
	must.Do(t, other.SetLocked(true))
	if !v.LockedForAll() || fingerprint(t, v) == before {
		t.Error("the mark is not seen")
	}
	if _, err := v.Credential("bearer/tracker/work"); !errors.Is(err, vault.ErrLocked) {
		t.Errorf("a credential is given: %v", err)
	}
	for range 2 {
		must.Do(t, other.SetLocked(false))
	}
	if _, err := v.Credential("bearer/tracker/work"); err != nil || v.LockedForAll() {
		t.Errorf("it stays locked: %v", err)
	}
}

// A session whose grants are loaded again ends its idle connections, so the first signed head of the log must not look
// like a change of the vault.
func TestTheKeyOfTheAuditLogIsNoChangeOfTheVault(t *testing.T) {
	v, dir := newVault(t)
	before := fingerprint(t, v)
	for _, name := range []string{"audit.key.new", "audit.key"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("a key"), 0o600))
		if fingerprint(t, v) != before {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "locked"), nil, 0o600))
	if fingerprint(t, v) == before {
		t.Error("a mark that locks the vault does not change the fingerprint")
	}
}

func fingerprint(t *testing.T, v *vault.Vault) string {
	t.Helper()
	return must.Get(v.Fingerprint())(t)
}

// SECURITY VLT-01.
func TestUnsafePlacesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"others may write to it": {func(t *testing.T, dir string) {
			chmod(t, dir, 0o770)
		}, "chmod 700"},
		"every user may write to the home": {func(t *testing.T, dir string) {
			chmod(t, filepath.Dir(dir), 0o777)
		}, "chmod go-w"},
		"others may write below it": {func(t *testing.T, dir string) {
			chmod(t, filepath.Join(dir, "bindings", "bearer"), 0o777)
		}, "chmod 700"},
		"it is a link": {func(t *testing.T, dir string) {
			move(t, dir, dir+"2")
			must.Do(t, os.Symlink(dir+"2", dir))
		}, "symbolic link"},
		"a directory below it is a link": {func(t *testing.T, dir string) {
			move(t, filepath.Join(dir, "bindings"), dir+"2")
			must.Do(t, os.Symlink(dir+"2", filepath.Join(dir, "bindings")))
		}, "symbolic link"},
		"a binding is a link": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "bindings/bearer/tracker/work.json")
			move(t, file, dir+"2")
			must.Do(t, os.Symlink(dir+"2", file))
		}, "symbolic link"},
		"a binding has a second name": {func(t *testing.T, dir string) {
			must.Do(t, os.Link(filepath.Join(dir, "bindings/bearer/tracker/work.json"), dir+"2"))
		}, "hard link"},
		"a binding is a pipe": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "bindings/bearer/tracker/work.json")
			must.Do(t, errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)))
		}, "regular file"},
		"a binding is larger than any": {func(t *testing.T, dir string) {
			must.Do(t, os.Truncate(filepath.Join(dir, "bindings/bearer/tracker/work.json"), 1<<20))
		}, "too large"},
		"others may write to a binding": {func(t *testing.T, dir string) {
			chmod(t, filepath.Join(dir, "bindings/bearer/tracker/work.json"), 0o666)
		}, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			v, dir := newVault(t)
			must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
			c.spoil(t, dir)
			if _, err := v.Bindings(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("reading returns %v, want %q", err, c.want)
			}
			err := v.Rebind("bearer/tracker/work", "", secret(t, "another-secret"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("writing returns %v, want %q", err, c.want)
			}
		})
	}
}

func TestIdentityMustBeAPlainFile(t *testing.T) {
	_, dir := newVault(t)
	file := filepath.Join(dir, "identity.age")
	move(t, file, dir+"2")
	must.Do(t, os.Symlink(dir+"2", file))
	if err := open(dir).Unlock([]byte(passphrase)); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a linked identity returns %v", err)
	}
	must.Do(t, errors.Join(os.Remove(file), os.Mkdir(file, 0o700)))
	if err := open(dir).Unlock([]byte(passphrase)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory returns %v", err)
	}
	home := t.TempDir()
	put(t, filepath.Join(home, "vault"), nil)
	if v := open(filepath.Join(home, "vault")); v.Initialised() || v.Init([]byte(passphrase)) == nil {
		t.Error("a file in the vault's place is a vault")
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.Rename(from, to))
}

// SECURITY VLT-01: the umask does not decide.
func TestEverythingIsTheOwnersOnly(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	home := t.TempDir()
	chmod(t, home, 0o700)
	v := open(filepath.Join(home, "vault"))
	err := errors.Join(v.Init([]byte(passphrase)), v.Bind(tracker("work"), secret(t, secretText)), v.SetLocked(true))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(home, "vault"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTimesAreKept(t *testing.T) {
	v, dir := newVault(t)
	must.Do(t, v.Bind(tracker("work"), secret(t, secretText)))
	file := filepath.Join(dir, "bindings/bearer/tracker/work.json")
	before := must.Get(v.Binding("bearer/tracker/work"))(t)
	if age := time.Since(before.Created); age < 0 || age > time.Hour || !before.Created.Equal(before.Updated) {
		t.Errorf("it was created at %v and updated at %v", before.Created, before.Updated)
	}
	earlier := fingerprint(t, v)
	must.Do(t, v.Rebind("bearer/tracker/work", "", secret(t, "another-secret")))
	if after, err := v.Binding("bearer/tracker/work"); err != nil || !after.Created.Equal(before.Created) {
		t.Errorf("rebinding makes %+v of %+v, %v", after, before, err)
	}
	if fingerprint(t, v) == earlier {
		t.Error("rebinding leaves the fingerprint as it was")
	}
	earlier = fingerprint(t, v)
	must.Do(t, v.Revoke("bearer/tracker/work"))
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) || fingerprint(t, v) == earlier {
		t.Errorf("revoking leaves its file, or the fingerprint: %v", err)
	}
	for _, err := range []error{
		v.Revoke("bearer/tracker/work"), v.Rebind("bearer/tracker/work", "", secret(t, secretText)),
	} {
		if !errors.Is(err, vault.ErrNotBound) {
			t.Errorf("what was revoked returns %v", err)
		}
	}
}
