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

func TestWhatNoOperationNamesIsRefusedInsideTheTunnel(t *testing.T) {
	w := newWorld(t, hello)
	for _, c := range []struct {
		method, url, class string
		reason             Reason
	}{
		{"GET", "https://other.example/", "capability_denied", "host_not_allowed"},
		{"GET", "https://api.good.example/admin", "capability_denied", "operation_not_matched"},
		{"PUT", "https://api.good.example/v1/items", "capability_denied", "operation_not_matched"},
		{"GET", "https://api.good.example/v1/items?admin=1", "capability_denied", "query_not_declared"},
		{"GET", "https://api.good.example/v1/items?access_token=x", "capability_denied", "query_not_declared"},
		{"GET", "https://127.0.0.1/", "capability_denied", "host_not_allowed"},
	} {
		res, body := w.do(c.method, c.url, "")
		class, why := reason(t, body)
		if res.StatusCode != 403 || class != c.class || why != c.reason ||
			res.Header.Get("X-Aileron-Audit-Id") != w.last().ID || Reason(w.last().Reason) != c.reason {
			t.Errorf("%s %s = %d %s %s, row %s %s", c.method, c.url, res.StatusCode, class, why, w.last().ID, w.last().Reason)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

func TestADifferentHostInsideATunnelIsRefused(t *testing.T) {
	w := newWorld(t, hello)
	for _, c := range []struct{ head, status string }{
		{"GET /v1/items HTTP/1.1\r\nHost: other.example\r\n", "421"},
		{"GET /v1/items HTTP/1.1\r\nHost: q.good.example\r\n", "421"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example:8443\r\n", "421"},
		{"GET https://other.example/v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "421"},
		{"GET http://api.good.example/v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example.\r\n", "421"},
		{"GET /v1/../admin HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/%2e%2e/admin HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET //v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items/a%2fb HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items;x=1 HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 2\r\n", "400"},
		{"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nHost: api.good.example\r\n", "400"},
		{"OPTIONS * HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
	} {
		before := len(w.rows())
		got := w.raw("api.good.example", c.head+"Connection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%q = %.60q, want %s", c.head, got, c.status)
		}
		if n := len(w.rows()) - before; n != 1 {
			t.Errorf("%q left %d rows, want 1", c.head, n)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
	if got := w.raw("api.good.example",
		"GET /v1/items HTTP/1.1\r\nHost: API.Good.EXAMPLE\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got,
		"HTTP/1.1 200") {
		t.Errorf("a host in capitals: %.60q", got)
	}
}

func TestAQueryCredentialIsThereOnce(t *testing.T) {
	w := newWorld(t, hello)
	w.do("GET", "https://q.good.example/v1/items?x=1&api_key=ATTACKER", "")
	if got := w.requests()[0].URL.Query(); len(got["api_key"]) != 1 || got.Get("api_key") != testSecret ||
		got.Get("x") != "1" {
		t.Errorf("the origin saw %v", got)
	}
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

func TestAPassthroughSessionForwardsUnnamedHostsOnly(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.cfg.Passthrough = true
	if res, _ := w.do("GET", "https://other.example/any/path", "", "Authorization",
		"Bearer its-own"); res.StatusCode != 200 || w.last().Event != audit.EventSandboxPassthrough {
		t.Errorf("got %d, %s", res.StatusCode, w.last().Event)
	}
	if got := w.requests()[0].Header.Get("Authorization"); got != "Bearer its-own" {
		t.Errorf("passed with %q", got)
	}
	if res, _ := w.do("GET", "https://api.good.example/admin", ""); res.StatusCode != 403 {
		t.Errorf("a named host was passed: %d", res.StatusCode)
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
