package homes

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// loadHost is the name in the certificate of httptest's servers.
const loadHost = "example.com"

// loadConnector is a connector without a credential, so that a session needs no vault and starts at once.
var loadConnector = map[string]string{
	"manifest.toml": `[connector]
name = "github://aileron-tests/aileron-connector-load"
version = "0.1.0"

[capabilities.network]
hosts = ["` + loadHost + `:443"]

[provides]
intents = ["load"]
`,
	"aileron.connector.v1.json": `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://aileron-tests/aileron-connector-load", "version": "0.1.0"},
 "tools": [{"name": "load", "description": "A counter", "operations": [
  {"name": "load", "summary": "Count", "method": "GET", "path": "/{id}", "hosts": ["` + loadHost + `"],
   "idempotency": "none"}]}]}
`,
}

// kills is the number of sessions that TestNoRequestIsSentWithoutAnIntent kills: AILERON_AUDIT_KILLS, or 8.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("AILERON_AUDIT_KILLS")
	if text == "" {
		return 8
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("AILERON_AUDIT_KILLS is %q, want a number", text)
	}
	return n
}

// counter is an origin that remembers the path of every request before it responds.
type counter struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

func newCounter(t *testing.T) *counter {
	c := &counter{seen: map[string]int{}}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.seen[r.URL.Path]++
		c.mu.Unlock()
		_, _ = io.WriteString(w, "{}")
	}))
	c.Config.ErrorLog = log.New(io.Discard, "", 0) // clients are killed while they shake hands
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

// newLoad is a person with a home without a vault, and the flags of a session that reaches the origin.
func newLoad(t *testing.T, origin *counter) (u *user, flags []string) {
	t.Helper()
	u = &user{t, filepath.Join(t.TempDir(), "h")}
	dir := t.TempDir()
	for name, text := range loadConnector {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	u.must("connector", "install", dir, "--yes")
	roots := filepath.Join(dir, "roots.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}
	must.Do(t, os.WriteFile(roots, pem.EncodeToMemory(block), 0o600))
	return u, []string{"proxy", "--json", "--upstream-ca", roots,
		"--resolve", loadHost + ":443:" + origin.Listener.Addr().String()}
}

// loaded is a session under load.
type loaded struct {
	cmd    *exec.Cmd
	client *http.Client
	errs   must.Output
}

// load starts a session.
func (u *user) load(flags []string) (*loaded, error) {
	s := &loaded{cmd: u.command("", flags...)}
	s.cmd.Stderr = &s.errs
	ready, err := harness.StartProxy(s.cmd)
	if err != nil {
		return nil, err
	}
	proxy, err := ready.Proxy()
	if err != nil {
		return nil, err
	}
	roots, err := ready.Roots()
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(proxy),
		MaxIdleConnsPerHost: 16, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	return s, nil
}

// burst sends requests from several clients until one fails in each, and returns the paths of those that got their
// response: their rows were committed long before.
func (s *loaded) burst(name string, clients int) (served []string) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := 0; ; i++ {
				path := fmt.Sprintf("/%s-%d-%d", name, c, i)
				res, err := s.client.Get("https://" + loadHost + path)
				if err != nil {
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					return
				}
				mu.Lock()
				served = append(served, path)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	s.client.CloseIdleConnections()
	return served
}

// killOnce starts a session, lets clients send through it, and kills it at any moment.
func (u *user) killOnce(flags []string, name string, random *rand.Rand) (served []string, err error) {
	s, err := u.load(flags)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); served = s.burst(name, 8) }()
	// Any moment is the subject.
	time.AfterFunc(time.Duration(20+random.IntN(300))*time.Millisecond, func() { _ = s.cmd.Process.Kill() })
	<-ended
	_ = s.cmd.Process.Kill() // clients may have ended otherwise
	_ = s.cmd.Wait()
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		return served, fmt.Errorf("it ended by itself: %v\n%s", s.cmd.ProcessState, &s.errs)
	}
	return served, nil
}

// Sessions are killed under load, two at a time on one log, while readers read it. Each request that the origin got
// has an intent, and each intent one outcome in the end. A reader that follows the log meanwhile shows each row once.
func TestNoRequestIsSentWithoutAnIntent(t *testing.T) {
	n := kills(t)
	origin := newCounter(t)
	u, flags := newLoad(t, origin)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	followed := u.follow(ctx)
	reading := u.readAll(ctx)
	var mu sync.Mutex
	served := 0
	next := make(chan int)
	var running sync.WaitGroup
	for worker := range 2 {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		running.Go(func() {
			for i := range next {
				got, err := u.killOnce(flags, strconv.Itoa(i), random)
				mu.Lock()
				if served += len(got); err != nil {
					t.Errorf("session %d: %v", i, err)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
	last, err := u.load(flags) // which records what the killed ones could not
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, last.cmd.Process.Signal(syscall.SIGTERM))
	if err := last.cmd.Wait(); err != nil {
		t.Fatalf("the last session: %v\n%s", err, &last.errs)
	}
	rows := u.rows()
	sent := u.explain(rows, origin)
	harness.WaitFor(t, "the follower reaches the end", func() bool { return followed.reached(rows[len(rows)-1].Hash) })
	stop()
	reading.Wait()
	followed.ended.Wait()
	followed.check(t, rows)
	u.must("audit", "verify")
	t.Logf("%d sessions killed, %d requests at the origin, %d of them answered, %d intents, %d rows, %d reads",
		n, len(origin.seen), served, sent, len(rows), reading.reads)
}

// explain compares the rows with what the origin got, and returns the number of intents.
func (u *user) explain(rows []audit.Row, origin *counter) int {
	u.t.Helper()
	origin.mu.Lock()
	defer origin.mu.Unlock()
	intents, outcomes := map[string]int{}, map[string]int{}
	byRequest := map[string]string{}
	for _, r := range rows {
		request, _ := r.Fields["request_id"].(string)
		switch {
		case r.Event == audit.EventProxyStarted:
			intents[r.Path]++
			byRequest[request] = r.Path
		case byRequest[request] != "":
			outcomes[byRequest[request]]++
		}
	}
	missing := 0
	for path, n := range origin.seen {
		if intents[path] < n {
			if missing++; missing <= 20 {
				u.t.Errorf("the origin got %s %d times; the log has %d intents", path, n, intents[path])
			}
		}
	}
	if missing > 0 {
		u.t.Errorf("%d of %d requests have no intent", missing, len(origin.seen))
	}
	for path, n := range intents {
		if outcomes[path] != n {
			u.t.Errorf("%s has %d intents and %d outcomes", path, n, outcomes[path])
		}
	}
	return len(intents)
}

// followed are the rows that a reader was shown while the log was written.
type followed struct {
	mu     sync.Mutex
	hashes []string
	last   map[string]bool
	err    error
	ended  sync.WaitGroup
}

// follow follows the log until ctx ends.
func (u *user) follow(ctx context.Context) *followed {
	f := &followed{last: map[string]bool{}}
	f.ended.Go(func() {
		err := audit.Follow(ctx, filepath.Join(u.home, "audit.db"), audit.Filter{}, func(r audit.Row) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.hashes = append(f.hashes, r.Hash)
			f.last[r.Hash] = true
			return nil
		}, func(n audit.Notice) { u.t.Logf("follow: %s %v", n.Text, n.Err) })
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	})
	return f
}

func (f *followed) reached(hash string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[hash] || f.err != nil
}

// check compares the rows that were shown with all rows.
func (f *followed) check(t *testing.T, rows []audit.Row) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || len(f.hashes) != len(rows) {
		t.Errorf("%d rows were shown of %d: %v", len(f.hashes), len(rows), f.err)
		return
	}
	for i, r := range rows {
		if f.hashes[i] != r.Hash {
			t.Errorf("row %d was not shown in its place", r.Seq)
			return
		}
	}
}

// reading are readers that read the log over and over.
type reading struct {
	sync.WaitGroup
	mu    sync.Mutex
	reads int
}

// readAll starts two readers, which must never find fewer rows than before, nor an error.
func (u *user) readAll(ctx context.Context) *reading {
	all := &reading{}
	for range 2 {
		all.Go(func() {
			before := int64(0)
			for ctx.Err() == nil {
				l, err := audit.OpenReader(filepath.Join(u.home, "audit.db"))
				if err != nil {
					u.t.Errorf("open the log: %v", err)
					return
				}
				newest, err := l.List(ctx, audit.Filter{Host: loadHost, Limit: 1, Newest: true})
				if err == nil && len(newest) == 1 {
					if newest[0].Seq < before {
						u.t.Errorf("row %d was there, and now the newest is %d", before, newest[0].Seq)
					}
					before = newest[0].Seq
				}
				if err != nil && ctx.Err() == nil {
					u.t.Errorf("list: %v", err)
				}
				_ = l.Close()
				all.mu.Lock()
				all.reads++
				all.mu.Unlock()
			}
		})
	}
	return all
}
