package proxy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

func TestAnAllowedRequestGetsTheCredentialAndTwoRows(t *testing.T) {
	w := newWorld(t, hello)
	res, body := w.do("GET", "https://api.good.example/v1/items?q=QCANARY", "", "Authorization", "Bearer ATTACKER",
		"X-Api-Key", "ATTACKER", "Cookie", "a=ATTACKER")
	if res.StatusCode != 200 || body != "hello" {
		t.Fatalf("got %d %q", res.StatusCode, body)
	}
	got := w.requests()[0]
	if auth := got.Header["Authorization"]; len(auth) != 1 || auth[0] != "Bearer "+testSecret {
		t.Errorf("the origin saw Authorization %q", auth)
	}
	if got.Host != "api.good.example" || got.RequestURI != "/v1/items?q=QCANARY" ||
		got.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("the origin saw %s %s %v", got.Host, got.RequestURI, got.Header)
	}
	if raw := fmt.Sprint(got.Header); strings.Contains(raw, "ATTACKER") {
		t.Errorf("the box's own credentials left: %s", raw)
	}
	rows := w.rows()
	if len(rows) != 2 || rows[0].Event != audit.EventProxyStarted || rows[1].Event != audit.EventProxyProxied ||
		rows[0].Fields["request_id"] != rows[1].Fields["request_id"] || rows[1].Binding != "bearer/tracker/test" ||
		rows[1].Source != audit.SourceConnectTLS || rows[1].Decision != "proxied" || rows[1].Status != 200 ||
		rows[1].ResponseBytes != 5 || rows[1].Path != "/v1/items" {
		t.Errorf("rows: %+v", rows)
	}
	if text := fmt.Sprintf("%+v", rows); strings.Contains(text, "CANARY") || strings.Contains(text, testSecret) {
		t.Errorf("a row holds a query or a secret: %s", text)
	}
}

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

func TestPlainHTTPIsForwardedWhereASpecAllowsIt(t *testing.T) {
	w := newWorld(t, hello)
	if res, body := w.do("GET", "http://plain.good.example/x", ""); res.StatusCode != 200 || body != "hello" ||
		res.ContentLength != 5 || w.last().Source != audit.SourceForwardHTTP {
		t.Errorf("got %d %q of %d bytes from %s", res.StatusCode, body, res.ContentLength, w.last().Source)
	}
	if res, body := w.do("GET", "http://api.good.example/v1/items", ""); res.StatusCode != 403 || len(w.requests()) != 1 {
		t.Errorf("in clear: %d %q", res.StatusCode, body)
	}
}

func TestTheAPITellsWhatIsAllowedAndNothingMore(t *testing.T) {
	w := newWorld(t, hello)
	ask := func(path string, header ...string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+w.addr+path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		must(t, err)
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

func TestAnUndeclaredUpgradeIsDenied(t *testing.T) {
	w := newWorld(t, hello)
	got := w.raw("api.good.example",
		"GET /v1/echo HTTP/1.1\r\nHost: api.good.example\r\nConnection: Upgrade\r\nUpgrade: "+
			"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\nGET / HTTP/1.0\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 426") || len(w.requests()) != 0 {
		t.Errorf("got %.80q, %d requests left", got, len(w.requests()))
	}
}
