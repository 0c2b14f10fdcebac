package forge

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// signed returns the archive of a connector, signed with a key.
func signed(t *testing.T, version string, key signature.SecretKey) []byte {
	t.Helper()
	dir := connectorDir(t, tracker, version, "x", strings.NewReplacer())
	must.Do(t, os.WriteFile(filepath.Join(dir, "signature.sig"), signatureOf(t, dir, key), 0o600))
	return pack(t, dir)
}

// signatureOf returns the signature of a connector's directory.
func signatureOf(t *testing.T, dir string, key signature.SecretKey) []byte {
	t.Helper()
	c := must.Get(store.Read(dir))(t)
	sig := must.Get(key.Sign(signature.ClaimOf(c)))(t)
	return sig
}

// packedWithSignature is the archive of the version 1.3.0 with any signature, which aileron
// would not pack.
func packedWithSignature(t *testing.T, sig []byte) []byte {
	t.Helper()
	dir := connectorDir(t, tracker, "1.3.0", "x", strings.NewReplacer())
	must.Do(t, os.WriteFile(filepath.Join(dir, "signature.sig"), sig, 0o600))
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	w := tar.NewWriter(compressed)
	must.Do(t, errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), compressed.Close()))
	return archive.Bytes()
}

// Another key than the one that was remembered of a publisher is refused, whatever --yes
// grants.
func TestAnotherKeyOfAPublisherIsRefused(t *testing.T) {
	t.Parallel()
	var keys [2]signature.SecretKey
	for i := range keys {
		var err error
		if keys[i], err = signature.GenerateKey(); err != nil {
			t.Fatal(err)
		}
	}
	f := Start(t)
	u := newUser(t, f)
	f.Publish(t, tracker, "1.2.0", asset, signed(t, "1.2.0", keys[0]))
	f.Publish(t, tracker, "1.3.0", asset, signed(t, "1.3.0", keys[1]))
	f.Publish(t, tracker, "1.4.0", asset, signed(t, "1.4.0", keys[0]))
	u.ok("connector", "install", tracker+"@1.2.0", "--yes")
	u.fails("signature_failure", "publisher_key_changed", "connector", "install", tracker+"@1.3.0", "--yes")
	u.ok("connector", "install", tracker+"@1.4.0", "--yes")
	if out, _, _ := u.start("connector", "list"); strings.Contains(out, "1.3.0") || !strings.Contains(out, "1.4.0") {
		t.Errorf("what is installed: %s", out)
	}
}

// What a publisher with a known key publishes without its signature, with that of another
// version, or with that of other bytes under the same tag, is refused for that reason.
func TestAPublishedSignatureIsOfTheseBytes(t *testing.T) {
	t.Parallel()
	key := must.Get(signature.GenerateKey())(t)
	f := Start(t)
	u := newUser(t, f)
	f.Publish(t, tracker, "1.2.0", asset, signed(t, "1.2.0", key))
	u.ok("connector", "install", tracker+"@1.2.0", "--yes")
	of := func(version, note string) []byte {
		return signatureOf(t, connectorDir(t, tracker, version, note, strings.NewReplacer()), key)
	}
	for _, c := range []struct {
		reason  string
		archive []byte
	}{
		{"signature_missing", packed(t, tracker, "1.3.0", "x")},
		{"signature_replayed", packedWithSignature(t, of("1.2.0", "x"))},
		{"signature_mismatch", packedWithSignature(t, of("1.3.0", "as it was signed"))},
	} {
		f.Publish(t, tracker, "1.3.0", asset, c.archive)
		u.fails("signature_failure", c.reason, "connector", "install", tracker+"@1.3.0", "--yes")
		if out, _, _ := u.start("connector", "list"); strings.Contains(out, "1.3.0") {
			t.Errorf("%s: it was installed: %s", c.reason, out)
		}
	}
	f.Publish(t, tracker, "1.3.0", asset, packedWithSignature(t, of("1.3.0", "x")))
	u.ok("connector", "install", tracker+"@1.3.0", "--yes")
}
