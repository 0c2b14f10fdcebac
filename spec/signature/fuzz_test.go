package signature

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever is read as a signature of a claim differs from one that was made in ways that mean nothing only.
func FuzzCheck(f *testing.F) {
	key := newKey(f)
	sig := sign(f, key, claim)
	f.Add(sig)
	f.Add(legacy(key, claim.Hash, claim.comment(), "x"))
	f.Add(bytes.ReplaceAll(sig, []byte("\n"), []byte("\r\n")))
	f.Add([]byte(untrustedPrefix + "\n\n" + trustedPrefix + "\n\n"))
	f.Add([]byte{})
	next := newKey(f)
	f.Add(with(sign(f, next, claim), sig, chainOf(f, key, next, newKey(f))[:200]))
	f.Add(with(sig, chainOf(f, key, next)))
	trusted := acme(key)
	other := claim
	other.Version = "1.2.1"
	signed := strings.Fields(string(sig))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Check(trusted, other, data); err == nil && data != nil {
			t.Errorf("%q is taken for a signature of another version", data)
		}
		got, err := Check(trusted, claim, data)
		if err != nil || data == nil {
			return
		}
		if !got.Signed || !got.Key.Equal(key.Public()) || !strings.Contains(string(data), signed[len(signed)-1]) &&
			!strings.Contains(string(data), claim.comment()) {
			t.Errorf("Check(%q) = %+v", data, got)
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	f.Add(newKey(f).Public().File())
	f.Add([]byte("RWQ"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := ParsePublicKey(data)
		if err != nil {
			return
		}
		if again, err := ParsePublicKey(key.File()); err != nil || !again.Equal(key) || !bytes.Contains(data,
			[]byte(key.String())) {
			t.Errorf("ParsePublicKey(%q) = %v, and read again %v, %v", data, key, again, err)
		}
	})
}

// A file of keys that is accepted has only whole keys of one authority, and is written as it was read.
func FuzzKeysFile(f *testing.F) {
	f.Add(Trust{Authority: "github://acme", Keys: []Known{{Key: newKey(f).Public(), By: "x"}},
		Revoked: []Known{{Key: newKey(f).Public()}}}.marshal())
	f.Add([]byte("format = 1\nauthority = \"github://acme\"\n[[keys]]\npublic_key = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := parseTrust(data)
		if err != nil {
			return
		}
		again, err := parseTrust(known.marshal())
		if err != nil || !known.Signs() || len(again.Keys) != len(known.Keys) || len(again.Revoked) != len(known.Revoked) ||
			again.Authority != known.Authority {
			t.Errorf("parseTrust(%q) = %+v, and read again %+v, %v", data, known, again, err)
		}
	})
}
