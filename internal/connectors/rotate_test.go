package connectors

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec/signature"
)

// Of what one command installs, a key that vouches for two others has one next key: that of the first.
func TestAKeyHasOneNextKeyInACommand(t *testing.T) {
	const authority = signature.Authority("github://acme")
	d := &home.Dir{Flag: t.TempDir()}
	keys := must.Get(d.PublisherKeys())(t)
	key := map[string]signature.SecretKey{}
	for _, name := range []string{"old", "next", "evil", "last"} {
		key[name] = must.Get(signature.GenerateKey())(t)
	}
	must.Do(t, keys.Add(t.Context(), authority, key["old"].Public()))
	claim := signature.Claim{FQN: "github://acme/tracker", Version: "1.0.0", Hash: "sha256:" + strings.Repeat("0", 64)}
	admitted := func(chain ...string) (Publisher, []byte) {
		sig := must.Get(key[chain[len(chain)-1]].Sign(claim))(t)
		for i := range len(chain) - 1 {
			sig = slices.Concat(sig, must.Get(key[chain[i]].Vouch(authority, key[chain[i+1]].Public()))(t))
		}
		p, _ := checkSignature(d, claim, sig)
		if p.Err != nil || p.State() != signatureNextKey || !strings.Contains(p.newKey(), p.Status.Key.String()) {
			t.Fatalf("%v: %+v, the key that is shown is %q", chain, p, p.newKey())
		}
		return p, sig
	}
	first, firstSig := admitted("old", "next")
	evil, evilSig := admitted("old", "evil")
	last, lastSig := admitted("old", "next", "last")
	recorder := changes.Recorder{Dir: d}
	batch := recorder.NewBatch()
	must.Do(t, rotateKey(t.Context(), d, batch, first, firstSig))
	if err := rotateKey(t.Context(), d, batch, evil, evilSig); err == nil ||
		!strings.Contains(err.Error(), "which github://acme has replaced already") {
		t.Errorf("another next key of the same key: %v", err)
	}
	must.Do(t, rotateKey(t.Context(), d, batch, first, firstSig)) // as if another installation had been faster
	must.Do(t, rotateKey(t.Context(), d, batch, last, lastSig))
	must.Do(t, batch.Close(nil))
	known := must.Get(keys.Of(authority))(t)
	if len(known.Keys) != 1 || !known.Keys[0].Key.Equal(key["last"].Public()) || len(known.Retired) != 2 {
		t.Errorf("the keys are %+v", known)
	}
}
