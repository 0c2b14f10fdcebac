package session

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A session ships the rows of its home, its own last ones too, and names the place without what opens it.
func TestASessionShipsTheLog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
	}))
	t.Cleanup(collector.Close)
	file := filepath.Join(t.TempDir(), "url")
	must.Do(t, os.WriteFile(file, []byte("otlp+"+collector.URL+"?key=canary\n"), 0o600))
	o := newOptions(t)
	o.Config.Audit.Ship = "@" + file
	o.Infof = t.Errorf
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.Close(t.Context(), 0, "done"))
	for _, r := range rows(t, o.Home) {
		if !strings.Contains(got.String(), string(r.Event)) || !strings.Contains(got.String(), r.Hash) {
			t.Errorf("the collector did not get row %d, %s", r.Seq, r.Event)
		}
		if where, _ := r.Fields["ship"].(string); r.Seq == 1 && where != "otlp "+collector.URL {
			t.Errorf("session.started has %q", where)
		}
	}
}

func TestASessionWithoutAPlaceToShipToDoesNotBegin(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"canary", "ftp://u:canary@h/x", "postgres://u:canary@h:x/db", "@/nowhere"} {
		o := newOptions(t)
		o.Config.Audit.Ship = where
		_, err := Open(t.Context(), o)
		if err == nil {
			t.Fatalf("Open with %s succeeds", where)
		}
		if text := err.Error(); !strings.Contains(text, "audit.ship in config.toml") || strings.Contains(text, "canary") {
			t.Errorf("Open with %s: %v", where, err)
		}
	}
}
