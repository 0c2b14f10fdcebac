package proxy

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func TestTheIntentIsCommittedBeforeTheUpstreamSeesAByte(t *testing.T) {
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if rows := w.rows(); len(rows) != 1 || rows[0].Event != audit.EventProxyStarted {
			t.Errorf("rows while the origin answers: %+v", rows)
		}
		hello(rw, r)
	})
	w.do("GET", "https://api.good.example/v1/items", "")
}

func TestAnUnboundOrLockedCredentialSendsNothing(t *testing.T) {
	w := newWorld(t, hello)
	g := *w.plane.grants.Load()
	fqn := slices.Collect(maps.Keys(g.Bound))[0]
	for want, grants := range map[Reason]*Grants{
		ReasonUnbound:             {},
		ReasonVaultLocked:         {Locked: true},
		ReasonVaultUnread:         {VaultUnreadable: true},
		ReasonConnectorUnreadable: {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonConnectorUnreadable}},
		ReasonHomeMissing:         {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonHomeMissing}},
		ReasonStoreUnreadable:     {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonStoreUnreadable}},
	} {
		grants.Index, grants.Scrub = g.Index, g.Scrub
		w.plane.SetGrants(grants)
		_, body := w.do("GET", "https://api.good.example/v1/items", "")
		if _, why := reason(t, body); why != want || len(w.requests()) != 0 || Reason(w.last().Reason) != want {
			t.Errorf("got %s, want %s; %d requests left", why, want, len(w.requests()))
		}
	}
}

func TestTheAPITellsWhatIsAllowedAndNothingMore(t *testing.T) {
	w := newWorld(t, hello)
	ask := func(path string, header ...string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+w.addr+path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res := must.Get((&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req))(t)
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	token := []string{"Authorization", "Bearer " + testToken}
	if code, body := ask("/v1/session", token...); code != 200 || !strings.Contains(body, `"operation":"items"`) ||
		strings.Contains(body, testSecret) {
		t.Errorf("session: %d %s", code, body)
	}
	for path, want := range map[string]int{"/v1/audit": 403, "/v1/vault/unlock": 403, "/v1/nothing": 404,
		"/debug/pprof": 404, "/healthz": 200} {
		if code, body := ask(path, token...); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	if code, _ := ask("/v1/session"); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	if code, _ := ask("/v1/session", append(token, "Origin", "https://evil.example")...); code != 403 {
		t.Errorf("from a web page: %d", code)
	}
}
