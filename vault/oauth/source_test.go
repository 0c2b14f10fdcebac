package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// session is what a session gives to a source, and what it was told.
type session struct {
	t      *testing.T
	vault  *vault.Vault
	name   string
	source *oauth.Source
	clock  atomic.Int64 // seconds that were added to the time

	mu     sync.Mutex
	events []string
}

func newSession(t *testing.T, s *authServer, v *vault.Vault, name string) *session {
	t.Helper()
	u := &session{t: t, vault: v, name: name}
	u.source = oauth.NewSource(name, u.grant(), oauth.SourceOptions{
		Vault: v, Now: func() time.Time { return time.Now().Add(time.Duration(u.clock.Load()) * time.Second) },
		Transport: func() (http.RoundTripper, error) { return s.transport(), nil },
		Record: func(vault.Binding) (func(error), error) {
			u.note("intent")
			return func(err error) {
				if err != nil {
					noSecret(t, err.Error())
					u.note("failed")
					return
				}
				u.note("renewed")
			}, nil
		},
		Announce: func() { u.note("announced"); u.source.Use(u.grant()) },
		Warn: func(_ vault.Binding, err error, asked bool) {
			noSecret(t, err.Error())
			if !asked {
				u.note("nothing asked")
			}
			u.note("warned: " + err.Error())
		},
	})
	return u
}

func (u *session) note(event string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.events = append(u.events, event)
}

func (u *session) told() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.events, "; ")
}

// grant is what the vault has now.
func (u *session) grant() oauth.Grant {
	g, _, err := oauth.Of(must.Get(u.vault.Credential(u.name))(u.t))
	must.Do(u.t, err)
	return g
}

func (u *session) fresh() error { return u.source.Fresh(u.t.Context(), vault.Secret{}) }

// One token request is made for all that meet the expiry, over all sessions, and its token is announced before it is
// used.
func TestOneRenewalServesAllExchangesOfAllSessions(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	sessions := []*session{newSession(t, s, v, name), newSession(t, s, v, name)}
	release := make(chan struct{})
	s.answer = func(url.Values) (int, http.Header, string) {
		<-release
		return 200, jsonType, with("scope", nil)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			u := sessions[i%2]
			if err := u.fresh(); err != nil {
				t.Error(err)
			}
			if got := u.grant().Token; got != "access-token-two" || !strings.Contains(u.told(), "announced") {
				t.Errorf("it goes on with %s, and the session knows %s", got, u.told())
			}
		})
	}
	close(release)
	all.Wait()
	if len(s.asked()) != 1 || s.asked()[0].Get("refresh_token") != "refresh-token-one" {
		t.Errorf("the service was asked %d times", len(s.asked()))
	}
	told := []string{sessions[0].told(), sessions[1].told()}
	slices.Sort(told)
	if strings.Join(told, "|") != "announced|intent; renewed; announced" {
		t.Errorf("the sessions were told %q", told)
	}
	for _, u := range sessions {
		must.Do(t, u.fresh())
	}
	if len(s.asked()) != 1 {
		t.Error("a fresh token was renewed")
	}
}

// A token that is near its end is used while the service does not answer, and not asked for with each request.
func TestATokenThatIsNotRenewedIsUsedUntilItExpires(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	g.Issued = time.Now().Add(-time.Hour + 30*time.Second)
	v, name := sealedGrant(t, g)
	u := newSession(t, s, v, name)
	s.sends(500, map[string]any{})
	for range 10 {
		must.Do(t, u.fresh())
	}
	if len(s.asked()) != 1 || !strings.HasPrefix(u.told(), "intent; failed; warned: 127.0.0.1:") {
		t.Errorf("asked %d times, told %s", len(s.asked()), u.told())
	}
	u.clock.Add(31) // it has expired, and the back-off is over
	if err := u.fresh(); err == nil || !strings.Contains(err.Error(), "answered with 500") {
		t.Errorf("%v", err)
	}
	if strings.Count(u.told(), "warned") != 1 {
		t.Errorf("said more than once: %s", u.told())
	}
	s.sends(200, token(nil))
	u.clock.Add(300)
	if err := u.fresh(); err != nil || u.grant().Token != "access-token-two" {
		t.Errorf("when the service is back: %v", err)
	}
}

// A login that the service has ended is not asked for again, by any session.
func TestAnEndedLoginIsKnownToAllSessions(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	first, second := newSession(t, s, v, name), newSession(t, s, v, name)
	s.sends(400, map[string]any{"error": "invalid_grant"})
	for _, u := range []*session{first, first, second} {
		if err := u.fresh(); !errors.Is(err, vault.ErrLoginNeeded) {
			t.Errorf("%v", err)
		}
	}
	if len(s.asked()) != 1 || must.Get(v.Binding(name))(t).Renewal != oauth.LoginNeeded {
		t.Errorf("asked %d times; the binding says %q", len(s.asked()), must.Get(v.Binding(name))(t).Renewal)
	}
	if !strings.Contains(first.told(), "intent; announced; failed; warned: ") {
		t.Errorf("the first session was told %s", first.told())
	}
	if told := second.told(); !strings.HasPrefix(told, "nothing asked; warned: ") || strings.Count(told, "warned") != 1 {
		t.Errorf("the second session was told %s", told)
	}
}

// That a login has ended is told after a failure that may pass, too.
func TestTheEndOfALoginIsToldAfterAnotherFailure(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	s.sends(500, map[string]any{})
	_ = u.fresh()
	s.sends(400, map[string]any{"error": "invalid_grant"})
	u.clock.Add(301)
	if err := u.fresh(); !errors.Is(err, vault.ErrLoginNeeded) || strings.Count(u.told(), "warned") != 2 {
		t.Errorf("%v; told %s", err, u.told())
	}
}

// What the disk does not take at the end of a session either is an outcome in its log, and is told.
func TestATokenThatCannotBeKeptAtTheEndIsTold(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	blocked := filepath.Join(v.Dir(), "bindings")
	s.answer = func(url.Values) (int, http.Header, string) {
		must.Do(t, os.Chmod(blocked, 0o777)) // as in TestANewTokenIsOnDiskBeforeItIsUsed
		return 200, jsonType, with("scope", nil)
	}
	if err := u.fresh(); err == nil {
		t.Fatal("it was kept")
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	u.source.Close(short)
	must.Do(t, os.Chmod(blocked, 0o700))
	told := u.told()
	if !strings.HasSuffix(told, "; failed; warned: "+told[strings.LastIndex(told, "keep the new token"):]) {
		t.Errorf("told %s", told)
	}
	if err := newSession(t, s, v, name).fresh(); !errors.Is(err, vault.ErrLoginNeeded) || len(s.asked()) != 1 {
		t.Errorf("the next session: %v, asked %d times", err, len(s.asked()))
	}
}

// The longest refresh token is kept, whatever its characters.
func TestALongRefreshTokenIsKept(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	for _, long := range []string{"refresh" + strings.Repeat("<", 4<<10-7), "refresh" + strings.Repeat(`"`, 4<<10-7)} {
		s.sends(200, token(map[string]any{"refresh_token": long, "expires_in": 1}))
		u.clock.Add(3600)
		must.Do(t, u.fresh())
		if got := u.grant().Refresh; got != long {
			t.Errorf("kept %d bytes: %.10s", len(got), got)
		}
	}
}

// A refused token that nothing renews is the service's answer, and no reason to ask for another login while it lives.
func TestARefusedTokenWithoutARefreshTokenIsNoEnd(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	g.Refresh, g.Issued = "", time.Now()
	v, name := sealedGrant(t, g)
	u := newSession(t, s, v, name)
	if err := u.source.Fresh(t.Context(), must.Get(vault.NewSecret([]byte(g.Token)))(t)); err != nil || u.told() != "" {
		t.Errorf("%v; told %s", err, u.told())
	}
	u.clock.Add(86400)
	if err := u.fresh(); !errors.Is(err, vault.ErrLoginNeeded) || !strings.Contains(u.told(), "warned") {
		t.Errorf("when it has expired: %v; told %s", err, u.told())
	}
}

// A user who binds the login again while it is renewed has the last word, and the log has what the service did.
func TestALoginThatIsBoundAgainDuringARenewalStaysAsItIs(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	again := s.grant()
	again.ID, again.Token, again.Refresh = "login-two", "access-token-three", "refresh-token-three"
	s.answer = func(url.Values) (int, http.Header, string) {
		c := must.Get(again.Credential())(t)
		must.Do(t, v.RebindLogin(again.Facts(must.Get(v.Binding(name))(t)), c))
		return 200, jsonType, with("scope", nil)
	}
	must.Do(t, u.fresh())
	if got := u.grant(); got.ID != "login-two" || got.Refresh != "refresh-token-three" {
		t.Errorf("the vault has the login %s, %s", got.ID, got.Refresh)
	}
	if u.told() != "intent; renewed; announced" {
		t.Errorf("told %s", u.told())
	}
}

// RFC 9700 section 4.14.2: a refresh token that may have been used up is not sent a second time, unless the service is
// known to leave it as it is.
func TestAnInterruptedRenewalIsNotRepeated(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(nil))
	for _, keeps := range []bool{false, true} {
		g := s.grant()
		g.Keeps = keeps
		v, name := sealedGrant(t, g)
		before := len(s.asked())
		killed := must.Get(v.RenewBinding(t.Context(), name))(t)
		must.Do(t, killed.Begin())
		lock := must.Get(filepath.Glob(filepath.Join(v.Dir(), "bindings/oauth2/google/*.lock")))(t)[0]
		mark := must.Get(os.ReadFile(lock))(t)
		killed.End()
		must.Do(t, os.WriteFile(lock, mark, 0o600))
		err := newSession(t, s, v, name).fresh()
		if asked := len(s.asked()) - before; keeps && (err != nil || asked != 1) ||
			!keeps && (!errors.Is(err, vault.ErrLoginNeeded) || asked != 0) {
			t.Errorf("keeps %v: asked %d times, %v", keeps, asked, err)
		}
	}
}

// What the service sent is not lost while the disk does not take it, is not used before it does, and no other process
// sends the old one.
func TestANewTokenIsOnDiskBeforeItIsUsed(t *testing.T) {
	for at, save := range map[string]func(*session) error{
		"the next request":       func(u *session) error { u.clock.Add(2); return u.fresh() },
		"the end of the session": func(u *session) error { u.source.Close(u.t.Context()); return nil },
	} {
		t.Run(at, func(t *testing.T) {
			s := newAuthServer(t)
			v, name := sealedGrant(t, s.grant())
			u := newSession(t, s, v, name)
			blocked := filepath.Join(v.Dir(), "bindings")
			s.answer = func(url.Values) (int, http.Header, string) {
				must.Do(t, os.Chmod(blocked, 0o777)) // the vault refuses to write there: in place of a disk that fills now
				return 200, jsonType, with("scope", nil)
			}
			if err := u.fresh(); err == nil || !strings.Contains(err.Error(), "keep the new token") {
				t.Fatalf("%v", err)
			}
			must.Do(t, os.Chmod(blocked, 0o700))
			if got := u.grant().Token; got != "access-token-one" || strings.Contains(u.told(), "announced") {
				t.Errorf("used before it is on disk: %s, %s", got, u.told())
			}
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := v.RenewBinding(short, name); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another process may renew it now: %v", err)
			}
			must.Do(t, save(u))
			if g := u.grant(); g.Refresh != "refresh-token-two" || len(s.asked()) != 1 {
				t.Errorf("asked %d times, and kept %s", len(s.asked()), g.Refresh)
			}
			if !strings.HasPrefix(u.told(), "intent; warned: keep the new token: ") ||
				!strings.HasSuffix(u.told(), "; renewed; announced") {
				t.Errorf("told %s", u.told())
			}
		})
	}
}

// An answer that is of no use may have replaced the refresh token all the same: the old one is used up then.
func TestARefreshTokenIsKeptFromAnAnswerThatIsRefused(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	s.sends(200, token(map[string]any{"token_type": "N_A"}))
	if err := u.fresh(); err == nil || u.grant().Refresh != "refresh-token-two" || u.grant().Token != "access-token-one" {
		t.Errorf("%v, and kept %s", err, u.grant().Refresh)
	}
	s.sends(200, token(map[string]any{"scope": "lire \u00e9crire \u001b]0;x"}))
	u.clock.Add(2)
	must.Do(t, u.fresh())
	if last := s.asked()[1]; last.Get("refresh_token") != "refresh-token-two" {
		t.Errorf("sent again: %s", last.Get("refresh_token"))
	}
	if granted := u.grant().Granted; !slices.Equal(granted, []string{"lire"}) {
		t.Errorf("granted: %q", granted)
	}
}

// Without room for the answer nothing is asked, and the token in force goes on.
func TestWithoutRoomNothingIsAsked(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	lock := filepath.Join(v.Dir(), "bindings/oauth2/google/work.lock")
	must.Do(t, os.Symlink("/dev/full", lock)) // refused as a link, before anything is written
	if err := u.fresh(); err == nil {
		t.Error("it was renewed")
	}
	if len(s.asked()) != 0 || strings.Contains(u.told(), "intent") {
		t.Errorf("asked %d times, told %s", len(s.asked()), u.told())
	}
}

// A token that the service refuses is renewed once, and not again for each request that it refuses.
func TestARefusedTokenIsRenewedOnce(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	g.Issued = time.Now()
	v, name := sealedGrant(t, g)
	u := newSession(t, s, v, name)
	s.sends(200, token(nil))
	refused := func(text string) error {
		return u.source.Fresh(t.Context(), must.Get(vault.NewSecret([]byte(text)))(t))
	}
	must.Do(t, refused("access-token-one"))
	must.Do(t, refused("access-token-one")) // of an exchange that was slower
	must.Do(t, refused("access-token-two")) // the service refuses the new one too: it is not the token
	if len(s.asked()) != 1 {
		t.Errorf("asked %d times", len(s.asked()))
	}
	u.clock.Add(61)
	must.Do(t, refused("access-token-two"))
	if len(s.asked()) != 2 {
		t.Errorf("asked %d times, a minute later", len(s.asked()))
	}
}

// The clock of the host may be wrong, and may be corrected while a session runs.
func TestTheClockMayBeWrong(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	g.Issued = time.Now()
	v, name := sealedGrant(t, g)
	u := newSession(t, s, v, name)
	s.sends(200, token(nil))
	must.Do(t, u.fresh())
	if len(s.asked()) != 0 {
		t.Fatal("a fresh token was renewed")
	}
	for i, change := range []int64{86400, -2 * 86400} { // a day fast, then a day slow
		u.clock.Add(change)
		for range 3 {
			must.Do(t, u.fresh())
		}
		if len(s.asked()) != i+1 {
			t.Errorf("after %d s: asked %d times", change, len(s.asked()))
		}
	}
}

// A service whose tokens live shorter than the margin is not asked before each request.
func TestShortLivesAreUsedForHalf(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	s.sends(200, token(map[string]any{"expires_in": 20}))
	for range 5 {
		must.Do(t, u.fresh())
	}
	u.clock.Add(11)
	must.Do(t, u.fresh())
	if len(s.asked()) != 2 {
		t.Errorf("asked %d times", len(s.asked()))
	}
}

// A session that ends waits for what the service sends.
func TestTheEndOfASessionWaitsForARenewal(t *testing.T) {
	s := newAuthServer(t)
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	begun, release := make(chan struct{}), make(chan struct{})
	s.answer = func(url.Values) (int, http.Header, string) {
		close(begun)
		<-release
		return 200, jsonType, with("scope", nil)
	}
	gone, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave() // the exchange that began it ends
	}()
	if err := u.source.Fresh(gone, vault.Secret{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	u.source.Close(t.Context())
	if g := u.grant(); g.Refresh != "refresh-token-two" || !strings.HasSuffix(u.told(), "renewed; announced") {
		t.Errorf("what the service sent is lost: %s, %s", g.Refresh, u.told())
	}
}

// A session that ends does not wait for the renewals of others, and asks nothing after them.
func TestTheEndOfASessionEndsAWaitForAnother(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(nil))
	v, name := sealedGrant(t, s.grant())
	u := newSession(t, s, v, name)
	held := must.Get(v.RenewBinding(t.Context(), name))(t)
	fresh := make(chan error, 1)
	go func() { fresh <- u.source.Fresh(t.Context(), must.Get(vault.NewSecret([]byte("access-token-one")))(t)) }()
	for !u.source.Renews() {
		runtime.Gosched()
	}
	u.source.Close(t.Context())
	held.End()
	<-fresh
	if len(s.asked()) != 0 || u.told() != "" {
		t.Errorf("asked %d times, told %s", len(s.asked()), u.told())
	}
}

// A vault that was locked holds no running session up while its token is valid.
func TestALockedVaultHoldsUntilTheTokenExpires(t *testing.T) {
	s := newAuthServer(t)
	g := s.grant()
	g.Issued = time.Now().Add(-time.Hour + 30*time.Second)
	v, name := sealedGrant(t, g)
	u := newSession(t, s, v, name)
	v.Lock()
	must.Do(t, u.fresh())
	u.clock.Add(31)
	if err := u.fresh(); !errors.Is(err, vault.ErrLocked) {
		t.Errorf("%v", err)
	}
	if len(s.asked()) != 0 || strings.Contains(u.told(), "warned") {
		t.Errorf("asked %d times, told %s", len(s.asked()), u.told())
	}
}

func BenchmarkFreshToken(b *testing.B) {
	g := oauth.Grant{ID: "login-one", Issued: time.Now(), Life: time.Hour}
	source := oauth.NewSource("oauth2/google/work", g, oauth.SourceOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if err := source.Fresh(b.Context(), vault.Secret{}); err != nil {
			b.Fatal(err)
		}
	}
}
