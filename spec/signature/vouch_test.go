package signature

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/ALRubinger/aileron/e2e/must"
)

const acmeAuthority Authority = "github://acme"

// keyRing returns so many keys.
func keyRing(t testing.TB, n int) (all []SecretKey) {
	t.Helper()
	for range n {
		all = append(all, newKey(t))
	}
	return all
}

// vouchFor returns the vouch of a key for the next one.
func vouchFor(t testing.TB, key, next SecretKey) []byte {
	t.Helper()
	return must.Get(key.Vouch(acmeAuthority, next.Public()))(t)
}

// with returns blocks one after the other.
func with(parts ...[]byte) []byte { return slices.Concat(parts...) }

// chainOf returns the vouches of each key for the one after it.
func chainOf(t testing.TB, keys ...SecretKey) (all []byte) {
	t.Helper()
	for i := range len(keys) - 1 {
		all = append(all, vouchFor(t, keys[i], keys[i+1])...)
	}
	return all
}

// signedBy returns the signatures of a claim by keys.
func signedBy(t testing.TB, c Claim, keys ...SecretKey) (all []byte) {
	t.Helper()
	for _, k := range keys {
		all = append(all, sign(t, k, c)...)
	}
	return all
}

// rawVouch is a vouch whose text and comment are the caller's.
func rawVouch(key SecretKey, message, comment string) []byte {
	return minisign.SignWithComments(key.key, []byte(message), comment, offerPrefix+key.Public().String())
}

func TestAKeyIsReplacedByTheOneThatItVouchesFor(t *testing.T) {
	k := keyRing(t, 4)
	for name, c := range map[string]struct {
		sig      []byte
		signer   SecretKey
		replaces []SecretKey
	}{
		"by the next key": {
			with(signedBy(t, claim, k[1]), chainOf(t, k[0], k[1])), k[1], k[:1],
		},
		"by both keys": {
			with(signedBy(t, claim, k[0], k[1]), chainOf(t, k[0], k[1])), k[1], k[:1],
		},
		"over a chain": {with(signedBy(t, claim, k[3]), chainOf(t, k...)), k[3], k[:3]},
		"with the vouches in another order": {
			with(vouchFor(t, k[1], k[2]), signedBy(t, claim, k[2]), vouchFor(t, k[0], k[1])), k[2], k[:2],
		},
		"by the old key alone, before the next": {
			with(signedBy(t, claim, k[0]), chainOf(t, k[0], k[1])), k[0], nil,
		},
		"by one in the middle of the chain": {with(signedBy(t, claim, k[1]), chainOf(t, k...)), k[1], k[:1]},
		"beside a key that is not known":    {with(signedBy(t, claim, k[3], k[0])), k[0], nil},
	} {
		st, err := Check(acme(k[0]), claim, c.sig)
		if err != nil || !st.Key.Equal(c.signer.Public()) || st.First || st.Retired || len(st.Replaces) != len(c.replaces) {
			t.Errorf("%s: Check = %+v, %v", name, st, err)
			continue
		}
		for i, r := range c.replaces {
			if !st.Replaces[i].Equal(r.Public()) {
				t.Errorf("%s: it replaces %v", name, st.Replaces)
			}
		}
	}
	// Of an authority that is not known, the first signature is taken, and no vouch proves anything.
	st, err := Check(acme(), claim, with(signedBy(t, claim, k[1], k[0]), chainOf(t, k[0], k[1])))
	if err != nil || !st.First || !st.Key.Equal(k[1].Public()) || len(st.Replaces) > 0 {
		t.Errorf("the first key: Check = %+v, %v", st, err)
	}
}

func TestAVouchThatIsNoneIsRefused(t *testing.T) {
	k := keyRing(t, 5)
	stranger := newKey(t)
	other := must.Get(k[0].Vouch("github://evil", k[1].Public()))(t)
	self := statement(acmeAuthority, k[0].Public())
	renamed := withID(t, k[0], 77) // the same key under another id
	twenty, hundred := keyRing(t, 20), keyRing(t, 101)
	retired := func(gone ...SecretKey) Trust {
		trust := acme(k[1])
		for _, g := range gone {
			trust.Retired = append(trust.Retired, Known{Key: g.Public()})
		}
		return trust
	}
	revoked := func(keys []SecretKey, gone ...SecretKey) Trust {
		trust := acme(keys...)
		for _, g := range gone {
			trust.Revoked = append(trust.Revoked, Known{Key: g.Public()})
		}
		return trust
	}
	next := signedBy(t, claim, k[1])
	forged := withID(t, stranger, k[0].Public().ID())
	for name, c := range map[string]struct {
		trust Trust
		sig   []byte
		want  Reason
		says  string
	}{
		"twenty signatures": {
			acme(twenty[0]), signedBy(t, claim, twenty...),
			ReasonTooMany, "20 signatures, at most 8",
		},
		"a chain of a hundred keys": {
			acme(hundred[0]), with(signedBy(t, claim, hundred[100]), chainOf(t, hundred...)),
			ReasonChainTooLong, "100 keys that vouch for others, at most 16",
		},
		"a key that vouches for itself": {
			acme(k[0]), with(signedBy(t, claim, k[0]), rawVouch(k[0], self, self)), ReasonVouch,
			"vouches for itself"},
		"a key that vouches for itself under another id": {acme(k[0]), with(next, rawVouch(k[0],
			statement(acmeAuthority, renamed.Public()), statement(acmeAuthority, renamed.Public()))),
			ReasonVouch, "vouches for itself"},
		"a chain that leads back": {acme(k[0]), with(signedBy(t, claim, k[2]), chainOf(t, k[0], k[1], k[2], k[0])),
			ReasonVouch, "leads back to the key"},
		"two vouches of one key": {
			acme(k[0]), with(next, vouchFor(t, k[0], k[1]), vouchFor(t, k[0], k[2])), ReasonVouch,
			"vouches for two keys"},
		"two vouches for one key": {
			acme(k[0]), with(next, vouchFor(t, k[0], k[1]), vouchFor(t, k[2], k[1])), ReasonVouch,
			"two keys vouch"},
		"a vouch of another publisher": {acme(k[0]), with(next, other), ReasonVouchReplayed, "of github://evil"},
		"a vouch of a stranger":        {acme(k[0]), with(next, vouchFor(t, stranger, k[1])), ReasonKeyChanged, ""},
		"a vouch by another key with the id": {acme(k[0]), with(next, rawVouch(forged,
			statement(acmeAuthority, k[1].Public()), statement(acmeAuthority, k[1].Public()))),
			ReasonVouch, "is not by that key"},
		"a vouch over another text": {acme(k[0]), with(next, rawVouch(k[0], "something else",
			statement(acmeAuthority, k[1].Public()))),
			ReasonVouch, "is not by that key"},
		"a vouch for what is no key": {acme(k[0]), with(next, rawVouch(k[0], "x", vouchPrefix+"github://acme RW")),
			ReasonVouch, "not a public key"},
		"a vouch for no publisher": {
			acme(k[0]), with(next, rawVouch(k[0], "x", vouchPrefix+"acme RW")), ReasonVouch,
			"is no publisher"},
		"a connector's signature as a vouch": {
			acme(k[0]), with(signedBy(t, claim, k[1]), signedBy(t, claim, k[0], k[0])),
			ReasonMalformed, "two signatures that name"},
		"vouches alone": {acme(k[0]), chainOf(t, k[0], k[1]), ReasonMalformed, "no signature"},
		"a chain whose last key did not sign": {acme(k[0]), with(signedBy(t, claim, k[3]), chainOf(t, k[0], k[1])),
			ReasonKeyChanged, ""},
		"a revoked key vouching": {
			revoked(k[2:3], k[0]), with(next, chainOf(t, k[0], k[1])),
			ReasonRevoked, "which was removed",
		},
		"a revoked key vouching, and no other": {
			revoked(nil, k[0]), with(next, chainOf(t, k[0], k[1])),
			ReasonRevoked, "which was removed",
		},
		"a revoked key in the chain": {
			revoked(k[:1], k[1]), with(signedBy(t, claim, k[2]), chainOf(t, k[:3]...)),
			ReasonRevoked, "which was removed",
		},
		"a vouch for a revoked key": {
			revoked(k[:1], k[1]), with(next, chainOf(t, k[0], k[1])),
			ReasonRevoked, "which was removed",
		},
		"a retired key vouching for another": {
			retired(k[0]), with(signedBy(t, claim, k[2]), chainOf(t, k[0], k[2])),
			ReasonRetired, "has replaced already"},
		"a vouch for a retired key": {
			retired(k[0]), with(signedBy(t, claim, k[1]), vouchFor(t, k[1], k[0])), ReasonRetired,
			"has replaced"},
		"a signature of other bytes by the next key": {acme(k[0]), with(signedBy(t, Claim{claim.FQN, claim.Version,
			"sha256:" + strings.Repeat("cd", 32)}, k[1]), chainOf(t, k[0], k[1])), ReasonMismatch, ""},
		"a signature of another version by the next key": {acme(k[0]), with(signedBy(t, Claim{claim.FQN, "9.9.9",
			claim.Hash}, k[1]), chainOf(t, k[0], k[1])), ReasonReplayed, ""},
		"a false signature beside a good one": {acme(k[0], k[1]), with(signedBy(t, claim, k[0]), signedBy(t, Claim{
			claim.FQN, claim.Version, "sha256:" + strings.Repeat("cd", 32)}, k[1])), ReasonMismatch, ""},
		"a second block that is cut short": {
			acme(k[0]), with(signedBy(t, claim, k[0]), []byte("untrusted comment: x\n")),
			ReasonTruncated, "line 5 of 8"},
	} {
		st, err := Check(c.trust, claim, c.sig)
		var refused *Error
		if !errors.As(err, &refused) || refused.Reason != c.want || !strings.Contains(err.Error(), c.says) || st.Signed {
			t.Errorf("%s: Check = %+v, %v; want %s and %q", name, st, err, c.want, c.says)
		}
	}
}

// What a key signed before it was replaced stays verified, and it signs nothing new: a thief of it could write any
// version, and any time.
func TestAReplacedKeyVerifiesWhatIsInstalledAndNothingNew(t *testing.T) {
	k := keyRing(t, 2)
	keys := OpenKeys(t.TempDir())
	must.Do(t, keys.Add(t.Context(), acmeAuthority, k[0].Public()))
	later := claim
	later.Version = "2.0.0"
	rotated := with(signedBy(t, later, k[1]), chainOf(t, k[0], k[1]))
	gone := must.Get(keys.Rotate(t.Context(), later, rotated))(t)
	if len(gone) != 1 || !gone[0].Equal(k[0].Public()) {
		t.Errorf("Rotate = %v", gone)
	}
	if again := must.Get(keys.Rotate(t.Context(), later, rotated))(t); len(again) > 0 {
		t.Errorf("the second Rotate = %v", again)
	}
	trust := must.Get(keys.Of(acmeAuthority))(t)
	if len(trust.Keys) != 1 || !trust.Keys[0].Key.Equal(k[1].Public()) || trust.Keys[0].VouchedBy != k[0].Public().ID() ||
		trust.Keys[0].By != later.comment() || len(trust.Retired) != 1 || len(trust.Revoked) > 0 {
		t.Errorf("known: %+v", trust)
	}
	st, err := Check(trust, claim, signedBy(t, claim, k[0]))
	if err != nil || !st.Retired || !st.Signed {
		t.Errorf("the older release: Check = %+v, %v", st, err)
	}
	var refused *Error
	if err := st.Refusal(trust, claim); !errors.As(err, &refused) || refused.Reason != ReasonRetired {
		t.Errorf("Refusal = %v", err)
	}
	if st, err := Check(trust, claim, signedBy(t, claim, k[0], k[1])); err != nil || st.Retired ||
		st.Refusal(trust, claim) != nil {
		t.Errorf("the older release, signed again: Check = %+v, %v", st, err)
	}
	if err := keys.Remember(t.Context(), claim, k[0].Public()); err == nil {
		t.Error("a replaced key is remembered as the first one")
	}
	// A replaced key can be removed, and is then refused for what is installed too.
	must.Do(t, keys.Revoke(t.Context(), acmeAuthority, k[0].Public().ID()))
	_, err = Check(must.Get(keys.Of(acmeAuthority))(t), claim, signedBy(t, claim, k[0]))
	if !errors.As(err, &refused) || refused.Reason != ReasonRevoked {
		t.Errorf("the removed key: %v", err)
	}
	must.Do(t, keys.Add(t.Context(), acmeAuthority, k[0].Public()))
	if trust := must.Get(keys.Of(acmeAuthority))(t); len(trust.Keys) != 2 || len(trust.Retired)+len(trust.Revoked) > 0 {
		t.Errorf("after keys add: %+v", trust)
	}
}

// A rotation is judged by what is known when it is written: a key that was removed meanwhile vouches for nothing.
func TestARotationIsJudgedAgainWhenItIsWritten(t *testing.T) {
	k := keyRing(t, 2)
	keys := OpenKeys(t.TempDir())
	must.Do(t, keys.Add(t.Context(), acmeAuthority, k[0].Public()))
	sig := with(signedBy(t, claim, k[1]), chainOf(t, k[0], k[1]))
	must.Get(Check(must.Get(keys.Of(acmeAuthority))(t), claim, sig))(t)
	must.Do(t, keys.Revoke(t.Context(), acmeAuthority, k[0].Public().ID()))
	var refused *Error
	if _, err := keys.Rotate(t.Context(), claim, sig); !errors.As(err, &refused) || refused.Reason != ReasonRevoked {
		t.Errorf("Rotate = %v", err)
	}
	if trust := must.Get(keys.Of(acmeAuthority))(t); len(trust.Keys) > 0 {
		t.Errorf("known: %+v", trust)
	}
}

func TestTheFileOfVouchesIsBounded(t *testing.T) {
	k := keyRing(t, MaxVouches+2)
	var file []byte
	for i := range MaxVouches {
		file = must.Get(AddVouch(acmeAuthority, file, vouchFor(t, k[i], k[i+1])))(t)
	}
	must.Do(t, CheckTrustFile(acmeAuthority, file))
	if _, err := Check(acme(k[0]), claim, with(signedBy(t, claim, k[MaxVouches]), file)); err != nil {
		t.Errorf("the longest chain: %v", err)
	}
	for name, c := range map[string]struct {
		vouch []byte
		want  string
	}{
		"one more":             {vouchFor(t, k[MaxVouches], k[MaxVouches+1]), "at most 16"},
		"a connector's":        {sign(t, k[0], claim), "vouches for no key"},
		"the same again":       {vouchFor(t, k[0], k[1]), "at most 16"},
		"what is no signature": {[]byte("x"), "does not begin with"},
	} {
		if _, err := AddVouch(acmeAuthority, file, c.vouch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: AddVouch = %v, want %q", name, err, c.want)
		}
	}
	if _, err := k[0].Vouch(acmeAuthority, k[0].Public()); err == nil {
		t.Error("a key vouches for itself")
	}
}

// A vouch can be verified and made with minisign, as docs/signatures.md writes.
func TestMinisignVerifiesAVouch(t *testing.T) {
	k := keyRing(t, 2)
	dir := t.TempDir()
	file := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	file("old.pub", string(k[0].Public().File()))
	file("statement", "aileron trust github://acme "+k[1].Public().String())
	file("trust", string(vouchFor(t, k[0], k[1])))
	if out, err := minisignProgram(t, dir, "-V", "-m", "statement", "-x", "trust", "-p", "old.pub"); err != nil {
		t.Errorf("minisign -V: %v\n%s", err, out)
	}
}

// The first signature is the one that a new user trusts, and that minisign reads.
func TestTheNewestKeySignsFirst(t *testing.T) {
	k := keyRing(t, 4)
	sorted := must.Get(NewestFirst(acmeAuthority, chainOf(t, k[:3]...), k))(t)
	for i, want := range []SecretKey{k[2], k[3], k[1], k[0]} {
		if !sorted[i].Public().Equal(want.Public()) {
			t.Errorf("key %d is %s", i, sorted[i].Public().ID())
		}
	}
	if same := must.Get(NewestFirst(acmeAuthority, nil, k))(t); !slices.EqualFunc(same, k,
		func(a, b SecretKey) bool { return a.Public().Equal(b.Public()) }) {
		t.Error("without vouches the order is another")
	}
}
