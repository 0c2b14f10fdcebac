package signature

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func open(t *testing.T) (*Keys, string) {
	t.Helper()
	home := t.TempDir()
	return OpenKeys(home), filepath.Join(home, "trust", "keys")
}

func TestTheFirstKeyIsRememberedAndNoOther(t *testing.T) {
	keys, dir := open(t)
	first, second := newKey(t).Public(), newKey(t).Public()
	ctx := t.Context()
	if known, err := keys.Of("github://acme"); err != nil || known.Signs() {
		t.Errorf("Of = %+v, %v", known, err)
	}
	if all, err := keys.List(); err != nil || len(all) != 0 {
		t.Errorf("List = %+v, %v", all, err)
	}
	must.Do(t, keys.Remember(ctx, claim, first))
	must.Do(t, keys.Remember(ctx, claim, first))
	var refused *Error
	if err := keys.Remember(ctx, claim, second); !errors.As(err, &refused) || refused.Reason != ReasonKeyChanged ||
		!strings.Contains(err.Error(), first.ID().String()) || !strings.Contains(err.Error(), second.ID().String()) {
		t.Errorf("another key: %v", err)
	}
	known, err := keys.Of("github://acme")
	if err != nil || len(known.Keys) != 1 || !known.Keys[0].Key.Equal(first) || known.Keys[0].By != claim.comment() ||
		known.Keys[0].Since.IsZero() {
		t.Errorf("Of = %+v, %v", known, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "github_acme.toml"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if all, err := keys.List(); err != nil || len(all) != 1 || all[0].Authority != "github://acme" {
		t.Errorf("List = %+v, %v", all, err)
	}
}

func TestAKeyIsRotatedRevokedAndForgotten(t *testing.T) {
	keys, dir := open(t)
	old, fresh := newKey(t), newKey(t)
	ctx := t.Context()
	must.Do(t, keys.Remember(ctx, claim, old.Public()))
	must.Do(t, keys.Add(ctx, "github://acme", fresh.Public()))
	must.Do(t, keys.Add(ctx, "github://acme", fresh.Public()))
	must.Do(t, keys.Revoke(ctx, "github://acme", old.Public().ID()))
	known, err := keys.Of("github://acme")
	if err != nil || len(known.Keys) != 1 || len(known.Revoked) != 1 || !known.Keys[0].Key.Equal(fresh.Public()) {
		t.Fatalf("Of = %+v, %v", known, err)
	}
	must.Do(t, keys.Revoke(ctx, "github://acme", fresh.Public().ID()))
	var refused *Error
	for name, key := range map[string]SecretKey{"the key": old, "the key with another id": withID(t, old, 7),
		"another key with its id": withID(t, newKey(t), old.Public().ID())} {
		if err := keys.Remember(ctx, claim, key.Public()); !errors.As(err, &refused) || refused.Reason != ReasonRevoked {
			t.Errorf("%s that was removed is remembered: %v", name, err)
		}
	}
	must.Do(t, keys.Remember(ctx, claim, newKey(t).Public())) // all were removed: a first one again
	if err := keys.Revoke(ctx, "github://acme", 1); !errors.Is(err, ErrNoKey) {
		t.Errorf("revoking no key: %v", err)
	}
	must.Do(t, keys.Add(ctx, "github://acme", old.Public())) // on purpose
	if known, err := keys.Of("github://acme"); err != nil || len(known.Keys) != 2 || len(known.Revoked) != 1 {
		t.Errorf("Of = %+v, %v", known, err)
	}
	if err := keys.Add(ctx, "github://acme", withID(t, newKey(t), old.Public().ID()).Public()); err == nil ||
		!strings.Contains(err.Error(), "another key with the id") {
		t.Errorf("a second key with an id: %v", err)
	}
	must.Do(t, keys.Forget(ctx, "github://acme"))
	if err := keys.Forget(ctx, "github://acme"); !errors.Is(err, ErrNoKey) {
		t.Errorf("forgetting nothing: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "github_acme.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// A file of keys that cannot be read must not make its authority one without keys.
func TestWhatCannotBeTrustedIsAnError(t *testing.T) {
	key := newKey(t).Public()
	good := string(Trust{Authority: "github://acme", Keys: []Known{{Key: key}}}.marshal())
	write := func(text string) func(dir, file string) error {
		return func(_, file string) error { return os.WriteFile(file, []byte(text), 0o600) }
	}
	for name, c := range map[string]struct {
		spoil func(dir, file string) error
		want  string
	}{
		"not TOML":           {write("x"), "toml"},
		"empty":              {write(""), "format 0"},
		"an unknown key":     {write(good + "colour = 1\n"), "unknown key keys.colour"},
		"a newer format":     {write(strings.Replace(good, "format = 1", "format = 2", 1)), "format 2"},
		"another authority":  {write(strings.Replace(good, `"github://acme"`, `"github://evil"`, 1)), "of github://evil"},
		"no authority":       {write(strings.Replace(good, `"github://acme"`, `"acme"`, 1)), "not an authority"},
		"no key":             {write("format = 1\nauthority = \"github://acme\"\n"), "it has no key"},
		"a key that is none": {write(strings.Replace(good, key.String(), "RWQ", 1)), "not a public key"},
		"a key twice":        {write(good + good[strings.Index(good, "[[keys]]"):]), "twice"},
		"too large":          {write(good + strings.Repeat("#", 64<<10)), "larger than 65536"},
		"writable by others": {func(_, f string) error { return os.Chmod(f, 0o622) }, "others may write"},
		"a directory of all": {func(d, _ string) error { return os.Chmod(d, 0o777) }, "others may write"},
		"a parent of all":    {func(d, _ string) error { return os.Chmod(filepath.Dir(d), 0o777) }, "others may write"},
		"a directory instead": {func(_, f string) error {
			return errors.Join(os.Remove(f), os.Mkdir(f, 0o700))
		}, "not a regular"},
		"a second name": {func(d, f string) error {
			return os.Link(f, filepath.Join(filepath.Dir(d), "x"))
		}, "hard link"},
		"a link": {func(d, f string) error {
			return errors.Join(os.Rename(f, filepath.Join(filepath.Dir(d), "x")), os.Symlink("../x", f))
		}, "symbolic link"},
		"a linked directory": {func(d, _ string) error {
			return errors.Join(os.Rename(d, d+"2"), os.Symlink("keys2", d))
		}, "not a directory"},
	} {
		keys, dir := open(t)
		must.Do(t, keys.Remember(t.Context(), claim, key))
		must.Do(t, c.spoil(dir, filepath.Join(dir, "github_acme.toml")))
		var unreadable *KeysError
		known, err := keys.Of("github://acme")
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), c.want) || known.Signs() {
			t.Errorf("%s: Of = %+v, %v; want %q", name, known, err, c.want)
		}
		if _, err := keys.List(); !errors.As(err, &unreadable) {
			t.Errorf("%s: List = %v", name, err)
		}
		if err := keys.Remember(t.Context(), claim, newKey(t).Public()); !errors.As(err, &unreadable) {
			t.Errorf("%s: Remember = %v", name, err)
		}
	}
}

// Many installations at once, each with a key of its own: one of the keys is the first, and stays it.
func TestOneOfManyFirstKeysWins(t *testing.T) {
	_, dir := open(t)
	home := filepath.Dir(filepath.Dir(dir))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []PublicKey
	for range 16 {
		key := newKey(t).Public()
		wg.Go(func() {
			keys := OpenKeys(home) // as another process has its own
			for range 4 {
				err := keys.Remember(t.Context(), claim, key)
				var refused *Error
				if err != nil && (!errors.As(err, &refused) || refused.Reason != ReasonKeyChanged) {
					t.Errorf("Remember = %v", err)
				}
				if err == nil {
					mu.Lock()
					won = append(won, key)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(won) != 4 || !won[0].Equal(won[3]) {
		t.Fatalf("%d times a key was remembered as the first", len(won))
	}
	known, err := OpenKeys(home).Of("github://acme")
	if err != nil || len(known.Keys) != 1 || !known.Keys[0].Key.Equal(won[0]) {
		t.Errorf("Of = %+v, %v", known, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the directory has %v, %v; want the lock and one file", left, err)
	}
}

func TestAWaitForTheLockEnds(t *testing.T) {
	keys, _ := open(t)
	must.Do(t, keys.Add(t.Context(), "github://acme", newKey(t).Public()))
	held, err := keys.lock(t.Context())
	must.Do(t, err)
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := keys.Forget(ctx, "github://acme"); !errors.Is(err, context.Canceled) {
		t.Errorf("Forget = %v", err)
	}
}

func TestTheFileOfKeysIsReadAsItWasWritten(t *testing.T) {
	want := Trust{Authority: "hub://acme", Keys: []Known{{Key: newKey(t).Public(), By: "hub://acme/x@1.0.0"}},
		Revoked: []Known{{Key: newKey(t).Public()}, {Key: newKey(t).Public()}}}
	got, err := parseTrust(want.marshal())
	if err != nil || !bytes.Equal(got.marshal(), want.marshal()) {
		t.Errorf("%v\n%s\nwant\n%s", err, got.marshal(), want.marshal())
	}
}

// The name of a file of keys is that of one authority, and no other name is.
func TestAFileOfKeysIsThatOfOneAuthority(t *testing.T) {
	for name, want := range map[string]Authority{
		"github_acme.toml": "github://acme",
		"github_acme":      "", // no suffix
		"github_.toml":     "",
		"acme.toml":        "",
		"GitHub_acme.toml": "",
	} {
		if a, ok := authorityOfFile(name); ok != (want != "") || ok && a != want {
			t.Errorf("authorityOfFile(%q) = %q, %t; want %q", name, a, ok, want)
		}
	}
}
