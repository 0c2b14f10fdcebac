package session

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// call sends a request to the control socket of a session.
func call(t *testing.T, s *Session, method, path, body string) (string, error) {
	t.Helper()
	raw, err := controlClient{home: s.opts.Home, id: s.ID()}.call(t.Context(), method, path, strings.NewReader(body))
	return string(raw), err
}

// A session shows its owner its own rows, and not those of other sessions.
func TestTheControlSocketShowsTheNewestRowsOfItsSession(t *testing.T) {
	s := open(t, newOptions(t))
	for i := range 5 {
		for _, id := range []string{s.ID(), "01THEIRS"} {
			must.Get(s.audit.Append(t.Context(), audit.Row{Event: audit.EventProxyStarted, SessionID: id, Status: i}))(t)
		}
	}
	raw, err := call(t, s, "GET", "/v1/audit?limit=2", "")
	must.Do(t, err)
	var list []audit.Row
	if err := json.Unmarshal([]byte(raw), &list); err != nil || len(list) != 2 {
		t.Fatalf("%s, %v; want two rows", raw, err)
	}
	for i, row := range list {
		if row.SessionID != s.ID() || row.Status != 3+i {
			t.Errorf("row %d is %s %d, want %s %d", i, row.SessionID, row.Status, s.ID(), 3+i)
		}
	}
	if raw, err := call(t, s, "GET", "/v1/audit/"+list[0].ID, ""); err != nil || !strings.Contains(raw, list[0].ID) {
		t.Errorf("GET /v1/audit/{id}: %s, %v", raw, err)
	}
	for path, want := range map[string]string{
		"/v1/audit?limit=-1": "400", "/v1/audit?limit=x": "400", "/v1/audit/01NONE": "404",
	} {
		if _, err := call(t, s, "GET", path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("GET %s: %v, want a refusal with %s", path, err, want)
		}
	}
}

// Whatever is asked of a session that is still being opened is refused, except
// its stop.
func TestASessionThatStartsRefusesAllButItsStop(t *testing.T) {
	s := newSession(newOptions(t))
	s.dir = filepath.Join(sessionsDir(s.opts.Home), s.id)
	must.Do(t, s.makeDir(t.Context()))
	defer s.release()
	for _, path := range []string{"/healthz", "/v1/session", "/v1/audit", "/v1/audit/01X", "/v1/vault/status", "/v1/ca"} {
		if _, err := call(t, s, "GET", path, ""); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("GET %s: %v, want a refusal with 503", path, err)
		}
	}
	err := Unlock(t.Context(), s.opts.Home, s.id, []byte(testPassphrase))
	if err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("Unlock: %v, want a refusal with 503", err)
	}
	out, err := call(t, s, "POST", "/v1/session/stop", "{}")
	if err != nil || !strings.Contains(out, "stopping") {
		t.Errorf("POST /v1/session/stop: %q, %v", out, err)
	}
	select { // it is requested once the response has left
	case <-s.opts.Stop.Done():
	case <-time.After(time.Minute):
		t.Error("a minute after the response no stop is requested")
	}
}

// flushed is a response that has left when it is flushed.
type flushed struct {
	*httptest.ResponseRecorder
	flush func()
}

func (f flushed) Flush() { f.flush() }

// The end of a session does not wait for the client that asked for it.
func TestAStopGetsItsResponseBeforeTheEndBegins(t *testing.T) {
	s := newSession(Options{})
	w := flushed{ResponseRecorder: httptest.NewRecorder()}
	left := ""
	w.flush = func() {
		if s.opts.Stop.Requested() {
			t.Error("the session ends before the response has left")
		}
		left = w.Body.String()
	}
	s.controlStop(w, nil)
	want := "{\"status\":\"stopping\"}\n"
	if left != want || w.Code != 202 || w.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%d %v %q left, want 202 and the whole of %q", w.Code, w.Header(), left, want)
	}
	if !s.opts.Stop.Requested() {
		t.Error("the session is not asked to end")
	}
}

// A running session injects again once its vault is unlocked, and not with a
// wrong passphrase.
func TestAVaultIsUnlockedForARunningSession(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := open(t, o)
	status := func() string {
		raw := must.Get(call(t, s, "GET", "/v1/vault/status", ""))(t)
		return strings.TrimSpace(raw)
	}
	if got, want := status(), `{"initialised":true,"locked":false}`; got != want {
		t.Errorf("open: the vault is %s, want %s", got, want)
	}
	must.Do(t, s.vault.SetLocked(true))
	s.loader.reload(t.Context())
	if got, want := status(), `{"initialised":true,"locked":true}`; got != want {
		t.Errorf("locked: the vault is %s, want %s", got, want)
	}
	must.Do(t, s.vault.SetLocked(false))
	err := Unlock(t.Context(), o.Home, s.ID(), []byte("wrong horse"))
	if want := "the session refused with status 403: the passphrase is wrong"; err == nil || err.Error() != want {
		t.Errorf("a wrong passphrase: %v, want %s", err, want)
	}
	identity := filepath.Join(o.Home, "vault", "identity.age")
	must.Do(t, os.Rename(identity, identity+".aside"))
	must.Do(t, os.Mkdir(identity, 0o700))
	err = Unlock(t.Context(), o.Home, s.ID(), []byte(testPassphrase))
	if err == nil || !strings.Contains(err.Error(), "identity.age: it is not a regular file") {
		t.Errorf("a vault that cannot be read: %v, want a refusal that names the file", err)
	}
	must.Do(t, os.Remove(identity))
	must.Do(t, os.Rename(identity+".aside", identity))
	must.Do(t, Unlock(t.Context(), o.Home, s.ID(), []byte(testPassphrase)))
	if got, want := status(), `{"initialised":true,"locked":false}`; got != want {
		t.Errorf("unlocked: the vault is %s, want %s", got, want)
	}
}

func TestAStopRequestEndsItsContexts(t *testing.T) {
	r := NewStopRequest()
	before, cancel := r.WithStop(t.Context())
	defer cancel()
	if r.Requested() || before.Err() != nil {
		t.Error("it is requested before Request")
	}
	r.Request()
	r.Request()
	after, cancel := r.WithStop(t.Context())
	defer cancel()
	for _, ctx := range []context.Context{before, after} {
		<-ctx.Done()
	}
	<-r.Done()
	if !r.Requested() {
		t.Error("it is not requested after Request")
	}
}
