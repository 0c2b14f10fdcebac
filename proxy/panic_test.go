package proxy

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// panickingRecorder panics at the n-th call of Append, or at each AppendSoon.
type panickingRecorder struct {
	Recorder
	mu     sync.Mutex
	append int
	soon   bool
}

func (r *panickingRecorder) Append(ctx context.Context, row audit.Row) (audit.Row, error) {
	r.mu.Lock()
	r.append--
	n := r.append
	r.mu.Unlock()
	if n == 0 {
		panic("CANARY: what a client sent")
	}
	return r.Recorder.Append(ctx, row)
}

func (r *panickingRecorder) AppendSoon(ctx context.Context, row audit.Row) error {
	if r.soon {
		panic(errors.New("CANARY: what a client sent"))
	}
	return r.Recorder.AppendSoon(ctx, row)
}

// Each place that recovers logs which function and line panicked, and never
// with which value; the session goes on.
func TestARecoveredPanicIsLoggedWithItsOrigin(t *testing.T) {
	const in = "proxy.(*panickingRecorder)."
	for name, c := range map[string]struct {
		in, at string
		h2     bool
		panics func(w *world, r *panickingRecorder) // what is to panic
		ask    func(w *world)
	}{
		"an exchange": {in: "an exchange", at: in + "Append panic_test.go:",
			panics: func(_ *world, r *panickingRecorder) { r.append = 1 }},
		"a connection": {in: "a connection", at: in + "Append panic_test.go:",
			panics: func(_ *world, r *panickingRecorder) { r.append = 1 },
			ask: func(w *world) {
				w.sends("CONNECT api.good.example:443 HTTP/1.1\r\nHost: api.good.example:443\r\n\r\n")
			}},
		"a response": {in: "a connection", at: in + "AppendSoon panic_test.go:",
			panics: func(_ *world, r *panickingRecorder) { r.soon = true }},
		"a response over HTTP/2": {in: "a response over HTTP/2", at: in + "AppendSoon panic_test.go:", h2: true,
			panics: func(_ *world, r *panickingRecorder) { r.soon = true }},
		"the decision": {in: "an exchange", at: "spec.(*Index).",
			panics: func(w *world, _ *panickingRecorder) { w.plane.SetGrants(&Grants{}) },
			ask: func(w *world) {
				if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 502 ||
					Reason(w.last().Reason) != ReasonPanic {
					w.t.Errorf("got %d %s, row %+v", res.StatusCode, body, w.last())
				}
			}},
		"a handshake": {in: "a handshake", at: "ca.(*Session).Leaf",
			panics: func(w *world, _ *panickingRecorder) { w.plane.cfg.CA = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			var log must.Output
			recorder := &panickingRecorder{}
			w := newWorldWith(t, false, func(cfg *Config) {
				recorder.Recorder, cfg.Audit = cfg.Audit, recorder
				cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			}, hello)
			ca, grants := w.plane.cfg.CA, w.plane.grants.Load()
			c.panics(w, recorder)
			client := w.client
			if c.h2 {
				client = w.h2client()
			}
			ask := c.ask
			if ask == nil {
				ask = func(w *world) {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.good.example/v1/items", http.NoBody)
					must.Do(t, err)
					if res, err := client.Do(r); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
					}
				}
			}
			ask(w)
			want := `in="` + c.in + `"`
			w.eventually(func() bool { return strings.Contains(log.String(), want) })
			if text := log.String(); !strings.Contains(text, c.at) || strings.Contains(text, "CANARY") {
				t.Errorf("the log says %s", text)
			}
			recorder.mu.Lock()
			recorder.append, recorder.soon, w.plane.cfg.CA = 0, false, ca
			recorder.mu.Unlock()
			w.plane.SetGrants(&Grants{Index: grants.Index, Bound: grants.Bound, Scrub: grants.Scrub})
			if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
				t.Errorf("the next request: %d %s", res.StatusCode, body)
			}
		})
	}
}

// refusalPanics panics wherever the refusal of a request that is under way is to
// be recorded.
type refusalPanics struct{ Recorder }

func (r refusalPanics) AppendSoon(ctx context.Context, row audit.Row) error {
	if row.Decision == audit.DecisionRejected {
		panic("CANARY: what a client sent")
	}
	return r.Recorder.AppendSoon(ctx, row)
}

// What counts as under way holds up the session's end, and takes a place from
// others.
func TestADenialThatPanicsIsNoLongerInFlight(t *testing.T) {
	w := newWorldWith(t, false, func(cfg *Config) { cfg.Audit = refusalPanics{cfg.Audit} },
		func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler) // so that the exchange fails when it is under way
		})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.good.example/v1/items", http.NoBody)
	must.Do(t, err)
	if res, err := w.client.Do(r); err == nil {
		_ = res.Body.Close()
		t.Errorf("got %d, want an end", res.StatusCode)
	}
	w.eventually(func() bool {
		w.plane.inflight.mu.Lock()
		defer w.plane.inflight.mu.Unlock()
		return w.plane.inflight.n == 0
	})
}

// A panic is a bug, which the connection recovers from and logs. What is no bug,
// such as a response that breaks off, is an error.
func TestNoPanicIsControlFlow(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file := must.Get(parser.ParseFile(fset, path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
					t.Errorf("%s panics", fset.Position(call.Pos()))
				}
			}
			return true
		})
		return nil
	})
	must.Do(t, err)
}
