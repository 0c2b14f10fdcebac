package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// A session that is served and closed has a first and a last event, and leaves
// nothing else.
func TestASessionBeginsAndEndsInTheLog(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	if got := left(t, o.Home); !slices.Equal(got, []string{s.ID()}) || !Alive(o.Home, s.ID()) {
		t.Errorf("open: the directories are %q; alive: %v", got, Alive(o.Home, s.ID()))
	}
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.Close(t.Context(), 7, "the command ended"))
	if got := left(t, o.Home); len(got) != 0 || Alive(o.Home, s.ID()) {
		t.Errorf("closed: the directories are %q; alive: %v", got, Alive(o.Home, s.ID()))
	}
	list := rows(t, o.Home)
	if len(list) != 2 {
		t.Fatalf("the log has %d rows, want 2", len(list))
	}
	first, last := list[0], list[1]
	if first.Event != audit.EventSessionStarted || first.SessionID != s.ID() || first.Fields["sealed"] != true ||
		first.Fields["agent"] != "curl" || first.Fields["mode"] != "proxy" || first.Fields["egress"] != "deny" {
		t.Errorf("the first row is %+v", first)
	}
	if last.Event != audit.EventSessionEnded || last.SessionID != s.ID() || last.Fields["exit_code"] != 7.0 ||
		last.Fields["cause"] != "the command ended" {
		t.Errorf("the last row is %+v", last)
	}
}

// What is listened on is served until the session closes, and not after.
func TestAListenerIsServedUntilClose(t *testing.T) {
	s := open(t, newOptions(t))
	must.Do(t, s.Serve(t.Context(), false))
	var addresses []string
	for range 2 {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		addresses = append(addresses, l.Addr().String())
		s.Listen(t.Context(), l, front.Listener{})
	}
	for _, at := range addresses {
		req := must.Get(http.NewRequestWithContext(t.Context(), "GET", "http://"+at+"/healthz", nil))(t)
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t) //nolint:bodyclose // closed below
		_ = res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	for _, at := range addresses {
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at); err == nil {
			_ = conn.Close()
			t.Errorf("%s accepts connections after Close", at)
		}
	}
}

// A session that did not serve has no events; one that was stopped before has
// the last one, because it was listed.
func TestASessionThatDidNotServe(t *testing.T) {
	for name, want := range map[string][]audit.Event{"abandoned": nil, "stopped": {audit.EventSessionEnded}} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.Stop = NewStopRequest()
			s := open(t, o)
			if name == "stopped" {
				o.Stop.Request()
			}
			s.Abandon(t.Context())
			checkEvents(t, o.Home, want...)
			if got := left(t, o.Home); len(got) != 0 {
				t.Errorf("the directories %q are left", got)
			}
			for _, r := range rows(t, o.Home) {
				if r.Fields["exit_code"] != float64(StoppedCode) || r.Fields["cause"] != StoppedCause {
					t.Errorf("the row is %+v", r)
				}
			}
		})
	}
}

// A session that is stopped while it opens does not open.
func TestAStopWhileASessionOpensEndsIt(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	o.Stop = NewStopRequest()
	o.Unlock = func(ctx context.Context) (*vault.Vault, error) { // as a prompt does
		ids := Running(o.Home)
		if len(ids) != 1 {
			t.Errorf("the sessions %q run, want one", ids)
			return nil, errors.New("no session")
		}
		if err := (State{ID: ids[0], State: "running"}).Stop(context.WithoutCancel(ctx), o.Home); err != nil {
			t.Errorf("Stop: %v", err)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s, err := Open(t.Context(), o); !errors.Is(err, ErrStopped) || s != nil {
		t.Errorf("Open = %v, %v; want ErrStopped", s, err)
	}
	checkEvents(t, o.Home, audit.EventSessionEnded)
}

// No session begins on a log that cannot be trusted or written, and none that
// fails leaves a directory.
func TestASessionThatCannotOpenLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o *Options)
		want  string
		hint  string
	}{
		"log": {func(o *Options) { must.Do(t, os.Mkdir(filepath.Join(o.Home, "audit.db"), 0o700)) },
			"audit", "without it no request is sent"},
		"store": {func(o *Options) { must.Do(t, os.WriteFile(filepath.Join(o.Home, "store"), nil, 0o600)) },
			"open the connector store", ""},
		"tunnel": {func(o *Options) { o.Config.Tunnel = []string{"192.0.2.1"} },
			"no plain HOST or HOST:PORT", "write it as"},
		"covered": {func(o *Options) { o.Config.Tunnel = []string{"api.github.com"} },
			"an installed connector does too", "remove it from the list"},
		"binding": {func(o *Options) { o.Bindings = map[spec.FQN]string{"github://acme/none": "work"} },
			"no such connector is installed", "aileron connector list"},
		"vault": {func(o *Options) {
			o.Unlock = func(context.Context) (*vault.Vault, error) { return nil, errors.New("no passphrase") }
		}, "no passphrase", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			if name != "store" {
				install(t, o.Home)
			}
			bind(t, o, "work")
			c.spoil(&o)
			_, err := Open(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint.Of(err), c.hint) {
				t.Errorf("Open: %v (%s); want %q (%s)", err, hint.Of(err), c.want, c.hint)
			}
			if got := left(t, o.Home); len(got) != 0 {
				t.Errorf("the directories %q are left", got)
			}
		})
	}
}

// Only rows that are nowhere make the next session's sweep record that outcomes
// are unknown: those in its journal are added to the log.
func TestKeptRowsAreNotLost(t *testing.T) {
	if lostRows(nil) || lostRows(&audit.LostError{Kept: 1}) || !lostRows(&audit.LostError{Lost: 1}) {
		t.Error("lostRows is not about rows that are nowhere")
	}
}

// A session whose first row cannot be written does not serve.
func TestASessionDoesNotServeWithoutItsFirstRow(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	path, away := filepath.Join(o.Home, "audit.db"), filepath.Join(o.Home, "away.db")
	must.Do(t, os.Rename(path, away))
	must.Do(t, os.Mkdir(path, 0o700)) // nothing can be written here
	err := s.Serve(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "record session.started") ||
		!strings.Contains(hint.Of(err), o.Home) {
		t.Errorf("Serve: %v (%s)", err, hint.Of(err))
	}
	must.Do(t, os.Remove(path))
	must.Do(t, os.Rename(away, path))
	s.Abandon(t.Context())
	if got := left(t, o.Home); len(got) != 0 {
		t.Errorf("the directories %q are left", got)
	}
}

// What is kept of a detached command's output has no secret of the session in it, in any piece.
func TestWhatASessionKeepsIsRedacted(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "default")
	s := open(t, o)
	kept, err := io.ReadAll(s.Redacted(io.NopCloser(iotest.OneByteReader(strings.NewReader("a " + testToken + " b")))))
	if text := string(kept); err != nil || strings.Contains(text, testToken) || !strings.HasPrefix(text, "a ") {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

func TestTunnelledHostsFollowTheOneRule(t *testing.T) {
	index, err := spec.NewIndex(nil)
	must.Do(t, err)
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			var want []string
			if c.Name != "" {
				want = []string{c.Name + ":8443"}
			}
			got, err := tunnelHosts([]string{c.Host + ":8443"}, index)
			if !slices.Equal(got, want) || (err == nil) != (want != nil) {
				t.Errorf("tunnel = [%q] is %q, %v, want %q", c.Host+":8443", got, err, want)
			}
		})
	}
}

// exported opens and closes a session that exports to a collector at a URL, and returns its home and its warnings.
func exported(t *testing.T, at string) (home string, warnings []string) {
	t.Helper()
	to := must.Get(otlp.FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at,
			"OTEL_EXPORTER_OTLP_HEADERS": "api-key=canary-of-otlp"}[name]
	}))(t)
	o := newOptions(t)
	o.Export = to
	o.Infof = func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.Close(t.Context(), 0, "done"))
	return o.Home, warnings
}

// The collector gets every row of the session, the last ones too, with the number and the hash that the log has. What
// opens the collector is in no file of the home.
func TestACollectorGetsTheRowsThatTheLogHas(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
	}))
	t.Cleanup(collector.Close)
	home, warnings := exported(t, collector.URL)
	if len(warnings) > 0 {
		t.Errorf("the warnings are %q", warnings)
	}
	log := must.Get(audit.OpenReader(filepath.Join(home, "audit.db")))(t)
	list, err := log.List(t.Context(), audit.Filter{})
	must.Do(t, err)
	must.Do(t, log.Close())
	if len(list) != 3 || list[0].Fields["otlp"] != collector.URL {
		t.Errorf("the log has %d rows, and the first has %v", len(list), list[0].Fields)
	}
	for _, r := range list { // texts are as they are in a protobuf
		if !strings.Contains(got.String(), string(r.Event)) || !strings.Contains(got.String(), r.Hash) {
			t.Errorf("the collector did not get row %d, %s", r.Seq, r.Event)
		}
	}
	must.Do(t, filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("canary-of-otlp")) {
			t.Errorf("%s has the credential of the collector", path)
		}
		return err
	}))
}

// Nothing listens: the session is as it would be, and says so once.
func TestASessionEndsWithoutItsCollector(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	home, warnings := exported(t, gone.URL)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0],
		"aileron: warning: 3 rows of the audit log were not exported to "+
			gone.URL) || !strings.HasSuffix(warnings[0], "connection refused; the log has them") {
		t.Errorf("the warnings are %q, want one", warnings)
	}
	if got := events(t, home); len(got) != 2 {
		t.Errorf("the log has %v", got)
	}
}

func TestAHostThatAConnectorDecidesIsNotAllowedAsItIs(t *testing.T) {
	opts := newOptions(t)
	install(t, opts.Home)
	opts.Allow = []string{"api.github.com"}
	if s, err := Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "an installed connector names it") {
		if err == nil {
			s.Abandon(t.Context())
		}
		t.Errorf("got %v, want a refusal that names the connector", err)
	}
	opts.Allow = []string{"docs.example"}
	s := must.Get(Open(t.Context(), opts))(t)
	defer s.Abandon(t.Context())
	if all := s.Connectors(); len(all) != 2 || !all[1].FQN.IsLocal() {
		t.Errorf("the connectors of the session: %v", all)
	}
}
