package session

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/otlp"
)

// exported opens and closes a session that exports to a collector at a URL, and returns its home and its warnings.
func exported(t *testing.T, at string) (home string, warnings []string) {
	t.Helper()
	to, err := otlp.FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at,
			"OTEL_EXPORTER_OTLP_HEADERS": "api-key=canary-of-otlp"}[name]
	})
	fatal(t, err)
	o := newOptions(t)
	o.Export = to
	o.Infof = func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	s := open(t, o)
	fatal(t, s.Serve(t.Context(), true))
	fatal(t, s.Close(t.Context(), 0, "done"))
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
	log, err := audit.OpenReader(filepath.Join(home, "audit.db"))
	fatal(t, err)
	list, err := log.List(t.Context(), audit.Filter{})
	fatal(t, err)
	fatal(t, log.Close())
	if len(list) != 3 || list[0].Fields["otlp"] != collector.URL {
		t.Errorf("the log has %d rows, and the first has %v", len(list), list[0].Fields)
	}
	for _, r := range list { // texts are as they are in a protobuf
		if !strings.Contains(got.String(), string(r.Event)) || !strings.Contains(got.String(), r.Hash) {
			t.Errorf("the collector did not get row %d, %s", r.Seq, r.Event)
		}
	}
	fatal(t, filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
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
