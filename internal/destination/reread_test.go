package destination

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A mounted secret changes while rows are shipped: what it has then is used for the next connection.
func TestAURLIsReadAgainForANewConnection(t *testing.T) {
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(first.Close)
	got := make(chan struct{}, 10)
	second := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
	t.Cleanup(second.Close)
	file, home := filepath.Join(t.TempDir(), "url"), t.TempDir()
	must.Do(t, os.WriteFile(file, []byte("otlp+"+first.URL+"\n"), 0o600))
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Wrote: true}))(t)
	must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventVaultLocked}))(t)
	must.Do(t, l.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	failed := make(chan struct{}, 10)
	go func() {
		_, err := Ship(ctx, Options{Home: home, Env: func(string) string { return "" }, Follow: true,
			From:   func() (*url.URL, error) { return ParseSetting("@" + file) },
			Report: func(string, ...any) { failed <- struct{}{} }})
		ended <- err
	}()
	<-failed
	must.Do(t, os.WriteFile(file, []byte("otlp+"+second.URL+"\n"), 0o600))
	select {
	case <-got:
	case <-time.After(must.Patience(time.Minute)):
		t.Error("the rows did not go to the place that the file has now")
	}
	stop()
	must.Do(t, <-ended)
}
