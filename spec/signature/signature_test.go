package signature

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/ALRubinger/aileron/e2e/must"
)

var claim = Claim{FQN: "github://acme/tracker", Version: "1.2.0", Hash: "sha256:" + strings.Repeat("ab", 32)}

func newKey(t testing.TB) SecretKey {
	t.Helper()
	key := must.Get(GenerateKey())(t)
	return key
}

func sign(t testing.TB, key SecretKey, c Claim) []byte {
	t.Helper()
	sig := must.Get(key.Sign(c))(t)
	return sig
}

// legacy signs without hashing, with the comments of the caller.
func legacy(key SecretKey, message, trusted, untrusted string) []byte {
	return minisign.SignWithComments(key.key, []byte(message), trusted, untrusted)
}

// acme is an authority with these keys.
func acme(keys ...SecretKey) Trust {
	t := Trust{Authority: "github://acme"}
	for _, k := range keys {
		t.Keys = append(t.Keys, Known{Key: k.Public()})
	}
	return t
}

// withID returns the key with another id, as its holder can give it.
func withID(t testing.TB, key SecretKey, id KeyID) SecretKey {
	t.Helper()
	text := must.Get(key.key.MarshalText())(t)
	_, line, _ := strings.Cut(string(text), "\n")
	raw := must.Get(strict.DecodeString(line))(t)
	binary.LittleEndian.PutUint64(raw[54:], uint64(id))
	other := must.Get(ParseSecretKey([]byte(untrustedPrefix+"\n"+strict.EncodeToString(raw)), nil))(t)
	return other
}

func TestASignatureIsVerified(t *testing.T) {
	key := newKey(t)
	sig := sign(t, key, claim)
	if again := sign(t, key, claim); string(again) != string(sig) {
		t.Error("signing it again results in other bytes")
	}
	offer := "public key " + key.Public().String()
	for name, sig := range map[string][]byte{
		"prehashed":           sig,
		"legacy":              legacy(key, claim.Hash, claim.comment(), offer),
		"with CRLF":           []byte(strings.ReplaceAll(string(sig), "\n", "\r\n")),
		"without a last line": []byte(strings.TrimSuffix(string(sig), "\n")),
		"with another comment that is not trusted": legacy(key, claim.Hash, claim.comment(), "from acme"),
	} {
		got, err := Check(acme(newKey(t), key), claim, sig)
		if err != nil || !got.Signed || got.First || !got.Key.Equal(key.Public()) {
			t.Errorf("%s: Check = %+v, %v", name, got, err)
		}
	}
	got, err := Check(acme(), claim, sig)
	if err != nil || !got.Signed || !got.First || !got.Key.Equal(key.Public()) {
		t.Errorf("the first key: Check = %+v, %v", got, err)
	}
	if got, err := Check(acme(), claim, nil); err != nil || got.Signed {
		t.Errorf("unsigned: Check = %+v, %v", got, err)
	}
}

func TestWhatIsRefusedAndWhy(t *testing.T) {
	key, other := newKey(t), newKey(t)
	sig := string(sign(t, key, claim))
	lines := strings.SplitAfter(sig, "\n")
	offer := "public key " + key.Public().String()
	later, elsewhere, content := claim, claim, claim
	later.Version, elsewhere.FQN, content.Hash = "1.3.0", "github://acme/wiki", "sha256:"+strings.Repeat("cd", 32)
	local := claim
	local.FQN = "local://allowed/x.example"
	revoked := acme()
	revoked.Revoked = []Known{{Key: key.Public()}}
	forged := withID(t, other, key.Public().ID())
	flip := func(line int) string {
		raw, _ := strict.DecodeString(strings.TrimSpace(lines[line]))
		raw[len(raw)-1] ^= 1
		all := append([]string{}, lines...)
		all[line] = base64.StdEncoding.EncodeToString(raw) + "\n"
		return strings.Join(all, "")
	}
	for _, c := range []struct {
		name  string
		trust Trust
		claim Claim
		sig   string
		want  Reason
		says  string
	}{
		{"stripped", acme(key), claim, "-", ReasonMissing, "github://acme signs its connectors (key " +
			key.Public().ID().String()},
		{"stripped after the key was removed", revoked, claim, "-", ReasonMissing, "a key that was removed"},
		{"another key", acme(other), claim, sig, ReasonKeyChanged, key.Public().ID().String() +
			", and the connectors of github://acme are signed with key " + other.Public().ID().String()},
		{"a removed key", revoked, claim, sig, ReasonRevoked, "was removed"},
		{"a removed key with another id", revoked, claim, string(sign(t, withID(t, key, 7), claim)), ReasonRevoked,
			"was removed"},
		{"another key with the same id", acme(key), claim, string(sign(t, forged, claim)), ReasonKeyMismatch,
			"another key that has the id"},
		{"the same, offering nothing", acme(key), claim, string(legacy(forged, claim.Hash, claim.comment(), "x")),
			ReasonKeyMismatch, "is not by that key"},
		{"the same, offering the right key", acme(key), claim, string(legacy(forged, claim.Hash, claim.comment(), offer)),
			ReasonKeyMismatch, "is not by that key"},
		{"a first key that is not offered", acme(), claim, string(legacy(key, claim.Hash, claim.comment(), "x")),
			ReasonKeyUnknown, "no key of github://acme is known"},
		{"a first key that is another", acme(), claim, string(legacy(other, claim.Hash, claim.comment(), offer)),
			ReasonKeyMismatch, "comes with the key"},
		{"a later version", acme(key), later, sig, ReasonReplayed, `"github://acme/tracker@1.2.0"`},
		{"another connector", acme(key), elsewhere, sig, ReasonReplayed, `"github://acme/tracker@1.2.0"`},
		{"a comment of none", acme(key), claim, string(legacy(key, claim.Hash, "", offer)), ReasonReplayed, `one of ""`},
		{"a comment with more", acme(key), claim, string(legacy(key, claim.Hash, claim.comment()+" ", offer)),
			ReasonReplayed, "1.2.0 "},
		{"other content", acme(key), content, sig, ReasonMismatch, "over other content"},
		{"the hash with a line end", acme(key), claim, string(legacy(key, claim.Hash+"\n", claim.comment(), offer)),
			ReasonMismatch, "over other content"},
		{"a changed comment", acme(key), claim, strings.Replace(sig, "1.2.0", "1.2.1", 1), ReasonComment, "1.2.1"},
		{"a changed comment for a later version", acme(key), later, strings.Replace(sig, "1.2.0", "1.3.0", 1),
			ReasonComment, "1.3.0"},
		{"a changed signature of the comment", acme(key), claim, flip(3), ReasonComment, "was changed"},
		{"a changed signature", acme(key), claim, flip(1), ReasonKeyMismatch, "is not by that key"},
		{"nothing", acme(key), claim, "", ReasonTruncated, "line 1"},
		{"one line", acme(key), claim, lines[0], ReasonTruncated, "after line 1"},
		{"three lines", acme(key), claim, strings.Join(lines[:3], ""), ReasonTruncated, "after line 3"},
		{"a torn signature", acme(key), claim, lines[0] + lines[1][:40] + "\n" + lines[2] + lines[3], ReasonTruncated,
			"line 2 of its signature is cut short"},
		{"a torn end", acme(key), claim, sig[:len(sig)-9], ReasonTruncated, "line 4 of its signature is cut short"},
		{"garbage", acme(key), claim, strings.Repeat("garbage\n", 4), ReasonMalformed, "is not minisign's"},
		{"bytes", acme(key), claim, "\xff\xfe\x00", ReasonMalformed, "is not text"},
		{"five lines", acme(key), claim, sig + "more\n", ReasonMalformed, "line 5 does not begin with"},
		{"an empty line", acme(key), claim, sig + "\n", ReasonMalformed, "line 5 does not begin with"},
		{"not base64", acme(key), claim, lines[0] + "=" + lines[1] + lines[2] + lines[3], ReasonMalformed, "in base64"},
		{"a space in base64", acme(key), claim, lines[0] + lines[1][:8] + " " + lines[1][8:] + lines[2] + lines[3],
			ReasonMalformed, "in base64"},
		{"no trusted comment", acme(key), claim, lines[0] + lines[1] + lines[0] + lines[3], ReasonMalformed, "line 3"},
		{"an unknown algorithm", acme(key), claim, lines[0] + "QUFB" + lines[1][4:] + lines[2] + lines[3], ReasonMalformed,
			"algorithm"},
		{"10 MiB", acme(key), claim, sig + strings.Repeat("a", 10<<20), ReasonTooLarge, "65536"},
		{"on a local connector", Trust{Authority: "local://allowed"}, local, sig, ReasonUnexpected, "of this machine"},
	} {
		var text []byte
		if c.sig != "-" {
			text = []byte(c.sig)
		}
		got, err := Check(c.trust, c.claim, text)
		var refused *Error
		if !errors.As(err, &refused) || refused.Reason != c.want || !strings.Contains(err.Error(), c.says) || got.Signed {
			t.Errorf("%s: Check = %+v, %v; want %s and %q", c.name, got, err, c.want, c.says)
		}
	}
}

func TestASecretKeyDoesNotPrint(t *testing.T) {
	key := newKey(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		if got := fmt.Sprintf(format, key); got != "[secret key]" {
			t.Errorf("%s prints %q", format, got)
		}
		if got := fmt.Sprintf(format, &struct{ K SecretKey }{key}); !strings.Contains(got, "[secret key]") {
			t.Errorf("%s of a struct prints %q", format, got)
		}
	}
}

func TestKeysThatCannotBeRead(t *testing.T) {
	key := newKey(t)
	secret := must.Get(key.key.MarshalText())(t)
	public := string(key.Public().File())
	for text, want := range map[string]string{
		string(secret):             "it is a secret key",
		"":                         "not a public key",
		"RWQ":                      "not a public key",
		strings.Repeat("RWQ\n", 3): "not a public key file",
		public + public:            "not a public key file",
		public[:len(public)-4]:     "not a public key",
		strings.Repeat("A", 56):    "not a public key", // another algorithm
		strings.Repeat(" ", 5000):  "not a public key file",
	} {
		if _, err := ParsePublicKey([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePublicKey(%.40q) = %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{public, key.Public().String(), strings.ReplaceAll(public, "\n", "\r\n"),
		strings.TrimSpace(public)} {
		if got, err := ParsePublicKey([]byte(text)); err != nil || !got.Equal(key.Public()) {
			t.Errorf("ParsePublicKey(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		public:                         "it is a public key",
		"garbage":                      "not a secret key",
		string(secret[:len(secret)-9]): "not a secret key",
	} {
		if _, err := ParseSecretKey([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSecretKey(%.40q) = %v, want %q", text, err, want)
		}
	}
}

func TestAnAuthorityIsTheOwner(t *testing.T) {
	for text, want := range map[string]string{
		"github://acme": "github://acme", "github://ACME": "github://acme", "github://acme/": "github://acme",
		"github://Acme/Tracker/sub": "github://acme", "gitlab://a.b-c_d": "gitlab://a.b-c_d", "hub://acme/x": "hub://acme",
		"acme": "", "": "", "local://allowed": "", "https://acme": "", "github://": "", "github://../x": "",
		"github://a b": "",
	} {
		if got, err := ParseAuthority(text); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("ParseAuthority(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// The spare bits of base64 are zero: otherwise a signature that was verified could be spelled in other ways.
func TestASignatureHasOneSpelling(t *testing.T) {
	key := newKey(t)
	lines := strings.SplitAfter(string(sign(t, key, claim)), "\n")
	last := strings.TrimRight(lines[3], "=\n") // 64 bytes: four bits of its last character are spare
	const alphabet = base64Alphabet
	at := strings.IndexByte(alphabet, last[len(last)-1])
	lines[3] = last[:len(last)-1] + alphabet[at+1:at+2] + "==\n"
	_, err := Check(acme(key), claim, []byte(strings.Join(lines, "")))
	if refused := (*Error)(nil); !errors.As(err, &refused) || refused.Reason != ReasonMalformed {
		t.Errorf("Check = %v, want %s", err, ReasonMalformed)
	}
}
