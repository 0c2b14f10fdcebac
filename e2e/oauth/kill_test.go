package oauth

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// renewals is how many a test waits for; AILERON_OAUTH_RENEWALS has another number for the night.
func renewals(t *testing.T) int {
	if text := os.Getenv("AILERON_OAUTH_RENEWALS"); text != "" {
		return must.Get(strconv.Atoi(text))(t)
	}
	return 200
}

// inFlight is how long a renewal takes at least: long enough that many are hit.
const inFlight = 150 * time.Millisecond

// killed is a home whose sessions are killed.
type killed struct {
	*person
	binding map[string]*sync.Mutex // held by the one that logs in again
	done    chan struct{}
	kills   atomic.Int64
	again   atomic.Int64 // logins, after a renewal that a kill interrupted
}

// Four processes renew the tokens of eight logins, so that one is being renewed at most moments, and are killed at
// random ones. A refresh token that is sent twice would look stolen, and the server would end all that came of its
// login.
func TestRenewalsSurviveKills(t *testing.T) {
	t.Parallel()
	services := []string{"mail", "notes", "chat", "files", "tasks", "photos", "maps", "music"}
	k := &killed{person: newPerson(t, authserver.Options{Life: 2 * time.Second, Slow: inFlight}, "", services...),
		binding: map[string]*sync.Mutex{}, done: make(chan struct{})}
	for _, service := range services {
		k.binding[service] = &sync.Mutex{}
		k.logIn(service, "binding", "setup", fqn(service))
	}
	want := renewals(t)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(k.work)
	}
	stop := sync.OnceFunc(func() { close(k.done); workers.Wait() })
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for k.State(t).Refreshes < want && k.State(t).Reuses == 0 && !t.Failed() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
		}
	}
	stop()
	state := k.State(t)
	t.Logf("%d renewals, %d sessions killed, %d logins again", state.Refreshes, k.kills.Load(), k.again.Load())
	if state.Reuses != 0 || k.kills.Load() == 0 {
		t.Errorf("%+v, after %d kills", state, k.kills.Load())
	}
	s := k.serve()
	for _, service := range services {
		k.must("binding", "inspect", binding(service), "--json")
		harness.WaitFor(t, service+" opens", func() bool { return k.ask(s, service).status == http.StatusOK })
	}
}

// work has sessions one after the other, and kills each at a random moment.
func (k *killed) work() {
	for {
		s := k.serve()
		kill := time.AfterFunc(time.Duration(1000+rand.IntN(6000))*time.Millisecond, func() {
			k.kills.Add(1)
			s.kill()
		})
		ended := k.use(s)
		kill.Stop()
		s.kill()
		if ended {
			return
		}
	}
}

// use asks all services until the session is killed, or all is done; then it reports true.
func (k *killed) use(s *session) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := rand.IntN(len(k.services)); ; i++ {
		select {
		case <-k.done:
			return true
		case <-s.ended:
			return false
		case <-tick.C:
			k.ask(s, k.services[i%len(k.services)])
		}
	}
}

// ask asks a service, and logs in again if a renewal was interrupted.
func (k *killed) ask(s *session, service string) response {
	got, err := s.get(service, "/api/me?echo=1")
	switch {
	case err != nil: // it was killed
	case got.status == http.StatusOK, got.status == http.StatusUnauthorized: // a machine may be slower than a token lives
	case got.class == "binding_failed" && strings.Contains(got.text, "aileron binding rebind"):
		if one := k.binding[service]; one.TryLock() {
			defer one.Unlock()
			k.again.Add(1)
			k.logIn(service, "binding", "rebind", binding(service))
		}
	default:
		k.t.Errorf("%s: %+v\n%s", service, got, s.said.String())
	}
	return got
}
