package oauth_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// A session holds a source for each login that is bound, with a copy of its token: at most 1 KiB beside the
// credential, which every binding has. What is redacted is
// held by package scrub, for each secret of any kind.
func TestALoginTakesLittleMemory(t *testing.T) {
	const logins = 4096
	credentials := make([]vault.Credential, logins)
	for i := range credentials {
		g := oauth.Grant{ID: fmt.Sprintf("login-%020d", i), Method: "authorization_code", Issued: time.Now(),
			Life: time.Hour, Token: fmt.Sprintf("ya29.%06d%s", i, strings.Repeat("aB3-xQ_z9", 23)),
			Refresh:  fmt.Sprintf("1//%06d%s", i, strings.Repeat("cD4-yR_a8", 10)),
			TokenURL: "https://oauth2.googleapis.com/token", RevokeURL: "https://oauth2.googleapis.com/revoke",
			Secret: fmt.Sprintf("GOCSPX-%028d", i),
			Client: fmt.Sprintf("%012d-0123456789abcdefghijklmnopqrstuv.apps.googleusercontent.com", i)}
		for _, scope := range []string{"gmail.readonly", "gmail.send", "calendar.readonly", "calendar.events"} {
			g.Scopes = append(g.Scopes, "https://www.googleapis.com/auth/"+scope)
		}
		credentials[i] = must.Get(g.Credential())(t)
	}
	sources := make([]*oauth.Source, logins)
	before := heap()
	for i, c := range credentials {
		g, _, err := oauth.Of(c)
		must.Do(t, err)
		sources[i] = oauth.NewSource("oauth2/google/work", g, oauth.SourceOptions{})
	}
	each := (heap() - before) / logins
	runtime.KeepAlive(sources)
	runtime.KeepAlive(credentials)
	t.Logf("%d bytes a login", each)
	if each < 200 || each > 1024 {
		t.Errorf("%d bytes a login, want at most 1024", each)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
