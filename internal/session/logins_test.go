package session

import (
	"fmt"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// A session that lives for weeks does not search for ever more tokens.
func TestTheTokensOfALoginStayRedactedUpToABound(t *testing.T) {
	l := &loader{secrets: map[string]scrub.Credential{}}
	l.redact("static-secret-of-another", "")
	token := func(kind string, n int) string { return fmt.Sprintf("%s-token-%06d", kind, n) }
	const renewals = 1000
	for n := range renewals {
		g := oauth.Grant{ID: "login-one", Token: token("access", n), Refresh: token("refresh", n)}
		l.redactTokens(g)
		l.redact(g.Token, "x-access-token")
		l.redactTokens(g) // a load for another reason
		l.redactTokens(oauth.Grant{ID: "login-two", Token: token("other", 0)})
	}
	has := func(secret string) bool {
		_, ok := l.secrets["\x00"+secret]
		return ok
	}
	if !has("static-secret-of-another") || !has(token("other", 0)) {
		t.Error("a login pushed out what is not its own")
	}
	for n := range renewals {
		if young := n >= renewals-maxTokens/2; has(token("access", n)) != young || has(token("refresh", n)) != young {
			t.Fatalf("renewal %d of %d: redacted %v, %v", n, renewals, has(token("access", n)), has(token("refresh", n)))
		}
	}
	if most := maxTokens + maxTokens/2 + 2; len(l.secrets) != most { // with those under a username
		t.Errorf("%d secrets are redacted, want %d", len(l.secrets), most)
	}
}

// What an action pins goes on with the account with which it began, too.
func TestAPinnedConnectorKeepsItsIdentity(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := open(t, o)
	l := &loader{s: s, identities: map[spec.FQN]string{}, actions: map[string]proxy.Action{
		"pinning": {Linked: &action.Linked{Pinned: s.Connectors()}}}}
	hash := s.Connectors()[0].Hash
	first, ok := l.choosePinned()[hash]
	if !ok || first[githubFQN].Identity != "work" {
		t.Fatalf("it begins with %+v", first)
	}
	must.Do(t, s.vault.Revoke(first[githubFQN].Name))
	bind(t, o, "home")
	if other, ok := l.choosePinned()[hash]; ok {
		t.Errorf("it goes on with %q", other[githubFQN].Identity)
	}
}
