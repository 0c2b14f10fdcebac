package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"aead.dev/minisign"

	"github.com/ALRubinger/aileron/audit"
	connectorcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/spec/signature"
)

// trackerDir returns a new directory with a version of a connector of an owner, as its publisher has it.
func trackerDir(t *testing.T, owner, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"manifest.toml", "aileron.connector.v1.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "tracker", name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer("github://acme/", "github://"+owner+"/", `"1.0.0"`, `"`+version+`"`).
			Replace(string(text))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600))
	}
	return dir
}

// secretKey writes a key without a passphrase, as minisign -W does: scrypt takes seconds and 1 GiB.
func secretKey(t *testing.T) (file, id, public string) {
	t.Helper()
	_, made, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := must.Get(made.MarshalText())(t)
	key, err := signature.ParseSecretKey(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "publisher.key")
	must.Do(t, os.WriteFile(file, text, 0o600))
	must.Do(t, os.WriteFile(connectors.PublicKeyFile(file), key.Public().File(), 0o600))
	return file, key.Public().ID().String(), key.Public().String()
}

// packed returns the archive of a directory, signed with the key in file unless that is "".
func (c runner) packed(dir, file string) string {
	c.t.Helper()
	out := filepath.Join(c.t.TempDir(), "aileron.tar.gz")
	args := []string{"connector", "pack", dir, "--output", out}
	if file != "" {
		args = append(args, "--sign", file)
	}
	c.ok(args...)
	return out
}

// refused expects that a command ends with 1, the class signature_failure and the reason, and prints each of says.
func (c runner) refused(reason signature.Reason, args []string, says ...string) {
	c.t.Helper()
	out, errs, code := c.run(append(args, "--json")...)
	want := append([]string{`"class":"signature_failure"`, `"reason":"` + string(reason) + `"`}, says...)
	for _, text := range want {
		if code != 1 || !strings.Contains(errs, text) {
			c.t.Errorf("aileron %v ends with %d: %s%s; want %s", args, code, out, errs, text)
		}
	}
}

// What one command installs is held to the first key that it brings, in whatever order.
func TestConnectorsOfOneCommandAreSignedWithOneFirstKey(t *testing.T) {
	c := newRunner(t)
	key, _, _ := secretKey(t)
	other, _, _ := secretKey(t)
	first, next := trackerDir(t, "acme", "1.0.0"), trackerDir(t, "acme", "1.1.0")
	signed := c.packed(first, key)
	for _, w := range []struct {
		reason  signature.Reason
		sources []string
	}{
		{signature.ReasonMissing, []string{signed, next}},
		{signature.ReasonMissing, []string{next, signed}},
		{signature.ReasonKeyChanged, []string{signed, c.packed(next, other)}},
	} {
		c.refused(w.reason, append(append([]string{"connector", "install"}, w.sources...), "--yes"))
		if got := c.ok("connector", "keys", "list", "--json") + c.ok("connector", "list", "--json"); got != "[]\n[]\n" {
			t.Errorf("after the refusal of %s there is %s", w.reason, got)
		}
	}
	c.ok("connector", "install", signed, c.packed(next, key), trackerDir(t, "beta", "1.0.0"), "--yes")
}

func TestAPublishersFirstKeyIsRememberedAndNoOtherIsAccepted(t *testing.T) {
	c := newRunner(t)
	key, id, public := secretKey(t)
	other, otherID, _ := secretKey(t)
	first, next := trackerDir(t, "acme", "1.0.0"), trackerDir(t, "acme", "1.1.0")
	install := func(archive string) []string { return []string{"connector", "install", archive, "--yes"} }

	_, errs, code := c.run(install(c.packed(first, key))...)
	for _, text := range []string{"signed with the key " + id + ", and no key of github://acme is known yet",
		"new key      " + public,
		"trusted on first use: from now on connectors of github://acme must be signed with the key " + id} {
		if code != 0 || !strings.Contains(errs, text) {
			t.Fatalf("the first installation ends with %d: %s; want %s", code, errs, text)
		}
	}
	if got := c.ok("connector", "show", "tracker"); !strings.Contains(got, "github://acme: signed with its key "+id) {
		t.Errorf("show prints %s", got)
	}
	list := decode[[]connectors.EntryJSON](t, c.ok("connector", "list", "--json"))
	if len(list) != 1 || !list[0].OK || *list[0].Signature != (connectors.SignatureJSON{Status: "verified",
		Authority: "github://acme", KeyID: id, PublicKey: public}) {
		t.Errorf("list prints %+v", list)
	}
	c.ok("connector", "verify")

	c.refused(signature.ReasonKeyChanged, install(c.packed(next, other)), id, otherID,
		"aileron connector keys add github://acme FILE")
	c.refused(signature.ReasonMissing, install(c.packed(next, "")), "keys remove github://acme --forget")
	c.refused(signature.ReasonMissing, install(next))
	c.refused(signature.ReasonMissing, install(trackerDir(t, "ACME", "1.0.0"))) // the same publisher
	if list := decode[[]connectors.EntryJSON](t, c.ok("connector", "list", "--json")); len(list) != 1 {
		t.Errorf("something was installed: %+v", list)
	}
	c.ok(install(trackerDir(t, "beta", "1.0.0"))...) // another publisher may be unsigned

	// A rotation.
	c.ok("connector", "keys", "add", "github://acme", connectors.PublicKeyFile(other))
	c.ok(install(c.packed(next, other))...)
	c.ok("connector", "keys", "remove", "github://acme", id)
	c.refused(signature.ReasonRevoked, []string{"connector", "verify", "github://acme/tracker@1.0.0"})
	c.refused(signature.ReasonRevoked, install(c.packed(trackerDir(t, "acme", "1.2.0"), key)))
	c.ok("connector", "verify", "github://acme/tracker@1.1.0")
	c.ok("connector", "keys", "remove", "github://acme", "--forget")
	if got := c.ok("connector", "keys", "list", "--json"); got != "[]\n" {
		t.Errorf("keys list prints %s", got)
	}

	var events []string
	for line := range strings.Lines(c.ok("audit", "list", "--limit", "0", "--json")) {
		row := decode[audit.Row](t, line)
		if strings.HasSuffix(string(row.Event), ".started") {
			continue
		}
		events = append(events, fmt.Sprintf("%s %s %v %v", row.Event, row.Reason, row.Fields["key_id"],
			row.Fields["signature"]))
	}
	want := []string{
		"publisher_key.added  " + id + " <nil>", "connector.installed  " + id + " new_key",
		"connector.verify_failed publisher_key_changed " + otherID + " <nil>",
		"connector.verify_failed signature_missing <nil> <nil>", "connector.verify_failed signature_missing <nil> <nil>",
		"connector.verify_failed signature_missing <nil> <nil>", "connector.installed  <nil> unsigned",
		"publisher_key.added  " + otherID + " <nil>", "connector.installed  " + otherID + " verified",
		"publisher_key.removed  " + id + " <nil>", "connector.verify_failed publisher_key_revoked " + id + " <nil>",
		"connector.verify_failed publisher_key_revoked " + id + " <nil>", "publisher_key.removed  <nil> <nil>",
	}
	if !slices.Equal(events, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
}

// A key that was removed stops nothing that is installed, which is said where it matters, and only there.
func TestASessionWarnsOfAConnectorWhoseKeyWasRemoved(t *testing.T) {
	o := newOwner(t)
	key, id, _ := secretKey(t)
	o.ok("connector", "install", o.packed(trackerDir(t, "acme", "1.0.0"), key), "npm", "--yes")
	warning := "aileron: warning: github://acme/tracker@1.0.0 is still allowed, but it is signed with the key " + id +
		", which was removed from the keys of github://acme; remove it with: aileron connector remove " +
		"github://acme/tracker@1.0.0\n"
	warns := func(args ...string) bool {
		t.Helper()
		_, errs, code := o.run(append(append([]string{"run"}, args...), "--", "true")...)
		if code != 0 {
			t.Fatalf("the session ends with %d: %s", code, errs)
		}
		return strings.Contains(errs, warning)
	}
	if warns() {
		t.Error("it warns of a key that is accepted")
	}
	_, errs, code := o.run("connector", "keys", "remove", "github://acme", id)
	if code != 0 || !strings.Contains(errs, "github://acme/tracker@1.0.0 is signed with it, stays installed and is "+
		"still allowed; remove it with: aileron connector remove github://acme/tracker@1.0.0\n") ||
		strings.Contains(errs, "npm") {
		t.Errorf("keys remove ends with %d: %s", code, errs)
	}
	if !warns() {
		t.Errorf("no session warns: %s", warning)
	}
	if warns("--connector", "npm") {
		t.Error("a session warns of a connector that it does not use")
	}
	o.ok("connector", "keys", "add", "github://acme", connectors.PublicKeyFile(key))
	if warns() {
		t.Error("it warns of a key that was added again")
	}
}

// A signature is no consent: a person is asked all the same, and a no remembers no key.
func TestASignatureDoesNotSkipTheQuestion(t *testing.T) {
	key, _, public := secretKey(t)
	o := newOwner(t)
	archive := o.packed(trackerDir(t, "acme", "1.0.0"), key)
	_, errs, code := o.converse(slices.Repeat([]string{"n"}, console.MaxTries), "connector", "install", archive)
	if code != 1 || !strings.Contains(errs, "[y/N]") || !strings.Contains(errs, public) {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if got := o.ok("connector", "keys", "list", "--json"); got != "[]\n" {
		t.Errorf("a key was remembered without consent: %s", got)
	}
	if _, errs, code := o.run("connector", "install", archive); code != 2 || !strings.Contains(errs, "pass --yes") {
		t.Errorf("without a terminal it ends with %d: %s", code, errs)
	}
}

// The same bytes are installed already, unsigned: the signature is added to them, and its key is asked about.
func TestASignatureIsAddedToWhatIsInstalled(t *testing.T) {
	c := newRunner(t)
	key, id, _ := secretKey(t)
	dir := trackerDir(t, "acme", "1.0.0")
	signed := c.packed(dir, key)
	c.ok("connector", "install", dir, "--yes")
	if _, errs, code := c.run("connector", "install", signed); code != 2 || !strings.Contains(errs, "pass --yes") {
		t.Errorf("a first key is remembered without consent: %d %s", code, errs)
	}
	again := decode[connectors.ConnectorJSON](t, c.ok("connector", "install", signed, "--yes", "--json"))
	if !again.Already {
		t.Error("it was installed anew")
	}
	if list := decode[[]connectors.EntryJSON](t, c.ok("connector", "verify", "--json")); list[0].Signature.KeyID != id {
		t.Errorf("verify prints %+v", list)
	}
	file := filepath.Join(c.Flag, "store/connectors/sha256", strings.TrimPrefix(again.Hash, "sha256:"), "signature.sig")
	for reason, spoil := range map[signature.Reason]func() error{
		signature.ReasonMalformed: func() error { return os.WriteFile(file, []byte(strings.Repeat("x\n", 4)), 0o600) },
		signature.ReasonMissing:   func() error { return os.Remove(file) },
	} {
		must.Do(t, spoil())
		c.refused(reason, []string{"connector", "verify"})
		c.ok("connector", "install", signed, "--yes") // repairs it
		c.ok("connector", "verify")
	}
}

func TestPackingIsReproducibleAndRefusesAStaleSignature(t *testing.T) {
	c := newRunner(t)
	key, _, _ := secretKey(t)
	dir := trackerDir(t, "acme", "1.0.0")
	read := func(file string) string {
		text := must.Get(os.ReadFile(file))(t)
		return string(text)
	}
	plain := read(c.packed(dir, ""))
	if signed := read(c.packed(dir, key)); signed != read(c.packed(dir, key)) || signed == plain {
		t.Error("a signed archive is not reproducible")
	}
	if plain != read(c.packed(dir, "")) {
		t.Error("an archive is not reproducible")
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", c.packed(dir, key), "-C", dir, "signature.sig").
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.ok("connector", "pack", dir, "--output", filepath.Join(t.TempDir(), "a"))
	later := trackerDir(t, "acme", "1.1.0")
	must.Do(t, os.WriteFile(filepath.Join(later, "signature.sig"), []byte(read(filepath.Join(dir, "signature.sig"))),
		0o600))
	c.refused(signature.ReasonReplayed, []string{"connector", "pack", later, "--output", filepath.Join(t.TempDir(), "a")},
		"sign it again with --sign")
	c.refused(signature.ReasonReplayed, []string{"connector", "install", later, "--yes"}, "github://acme/tracker@1.0.0")
	for reason, spoil := range map[signature.Reason]func(file string) error{
		signature.ReasonTooLarge: func(f string) error { return os.WriteFile(f, make([]byte, 10<<20), 0o600) },
		signature.ReasonNotAFile: func(f string) error { return os.Symlink("/etc/passwd", f) },
	} {
		file := filepath.Join(later, "signature.sig")
		must.Do(t, os.Remove(file))
		must.Do(t, spoil(file))
		c.refused(reason, []string{"connector", "install", later, "--yes"})
	}
}

func TestTheCatalogueIsPartOfAileron(t *testing.T) {
	c := newRunner(t)
	if got := c.ok("connector", "check", "npm"); !strings.Contains(got, "part of aileron") {
		t.Errorf("check prints %s", got)
	}
	in := decode[connectors.ConnectorJSON](t, c.ok("connector", "install", "npm", "--yes", "--json"))
	if in.Signed || in.Signature.Status != "part_of_aileron" {
		t.Errorf("install prints %+v", in.Signature)
	}
}

func TestKeygenOverwritesNothing(t *testing.T) {
	c, dir := newRunner(t), t.TempDir()
	fails := func(want string, args ...string) {
		t.Helper()
		if _, errs, code := c.run(args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("aileron %v ends with %d: %s; want %q", args, code, errs, want)
		}
	}
	secret, pass := filepath.Join(dir, "acme.key"), filepath.Join(dir, "passphrase")
	for _, file := range []string{pass, filepath.Join(dir, "acme.pub"), secret} {
		must.Do(t, os.WriteFile(file, []byte("correct horse battery\n"), 0o600))
	}
	fails("it exists already", "connector", "keygen", "--out", secret, "--passphrase-file", pass)
	must.Do(t, os.Remove(secret))
	fails("it exists already", "connector", "keygen", "--out", secret, "--passphrase-file", pass)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the directory has %v, %v; want no secret key without its public key", left, err)
	}
	fails("there is no terminal to ask on", "connector", "keygen", "--out", filepath.Join(dir, "other.key"))
}

// Of sixteen installations at once, each of a publisher's first connector signed with a key of its own, one succeeds:
// its key is the one that is remembered.
func TestManyFirstInstallationsRememberOneKey(t *testing.T) {
	c := newRunner(t)
	dir := trackerDir(t, "acme", "1.0.0")
	archives, ids := make([]string, 16), make([]string, 16)
	for i := range archives {
		var key string
		key, ids[i], _ = secretKey(t)
		archives[i] = c.packed(dir, key)
	}
	type result struct {
		errs string
		code int
	}
	results := make([]result, len(archives))
	var wg sync.WaitGroup
	for i, archive := range archives {
		wg.Go(func() {
			_, errs, code := c.run("connector", "install", archive, "--yes", "--json")
			results[i] = result{errs, code}
		})
	}
	wg.Wait()
	won := slices.IndexFunc(results, func(r result) bool { return r.code == 0 })
	for i, r := range results {
		if i != won && (r.code != 1 || !strings.Contains(r.errs, `"reason":"publisher_key_changed"`)) {
			t.Errorf("installation %d ends with %d: %s", i, r.code, r.errs)
		}
	}
	if won < 0 {
		t.Fatal("no installation succeeded")
	}
	list := decode[[]connectors.EntryJSON](t, c.ok("connector", "verify", "--json"))
	keys := decode[[]connectorcmd.PublisherKeyJSON](t, c.ok("connector", "keys", "list", "--json"))
	if len(list) != 1 || list[0].Signature.KeyID != ids[won] || len(keys) != 1 || keys[0].KeyID != ids[won] {
		t.Errorf("installed is %+v, with the keys %+v; want the key %s", list, keys, ids[won])
	}
	c.ok("audit", "verify")
}

func TestAScopeCannotLookLikeALineOfItsOwn(t *testing.T) {
	c := newRunner(t)
	dir := trackerDir(t, "acme", "1.0.0")
	manifest := filepath.Join(dir, "manifest.toml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	forged := "Read" + strings.Repeat(" ", 57) + "publisher    part of aileron"
	spoiled := strings.Replace(string(text), "Read issues", forged, 1)
	must.Do(t, os.WriteFile(manifest, []byte(spoiled), 0o600))
	if got := c.ok("connector", "check", dir); !strings.Contains(got, ": Read publisher part of aileron\n") {
		t.Errorf("check prints %s", got)
	}
}
