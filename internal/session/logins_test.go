package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// A session that lives for weeks does not search for ever more tokens, however long these are.
func TestTheTokensOfALoginStayRedactedUpToABound(t *testing.T) {
	for _, size := range []int{24, 1200, vault.MaxSecret} {
		l := &loader{secrets: map[string]scrub.Credential{}}
		l.redact("static-secret-of-another", "")
		token := func(kind string, n int) string {
			head := fmt.Sprintf("%s-%06d-", kind, n)
			return head + strings.Repeat("x", size-len(head))
		}
		const renewals = 2000
		for n := range renewals {
			g := oauth.Grant{ID: "login-one", Token: token("access", n), Refresh: token("constant", 0)}
			l.redactLatest(g.ID, "", g.Token, g.Refresh)
			l.redact(g.Token, "x-access-token")
			l.redactLatest(g.ID, "", g.Token, g.Refresh) // a load for another reason
			l.redactLatest("login-two", "", token("other", 0))
		}
		has := func(secret string) bool {
			_, ok := l.secrets["\x00"+secret]
			return ok
		}
		if !has("static-secret-of-another") || !has(token("other", 0)) || !has(token("constant", 0)) {
			t.Errorf("%d bytes: a login pushed out what is in force, or not its own", size)
		}
		young := max(maxTokens/size-1, 1) // besides the refresh token
		for n := range renewals {
			if has(token("access", n)) != (n >= renewals-young) {
				t.Fatalf("%d bytes: renewal %d of %d is redacted: %v", size, n, renewals, has(token("access", n)))
			}
		}
		if most := 2*young + 3; len(l.secrets) != most { // with those under a username
			t.Errorf("%d bytes: %d secrets are redacted, want %d", size, len(l.secrets), most)
		}
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
