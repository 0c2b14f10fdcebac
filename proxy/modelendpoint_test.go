package proxy_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/front"
)

const modelKey = "the-key-of-the-model-endpoint"

// newModelFixture is a listener with two models: one whose provider has a connector, and one whose has none.
func newModelFixture(t *testing.T, session, operation string) *fixture {
	t.Helper()
	return newFixtureAt(t, session, operation, front.Listener{Models: []front.Model{
		{Name: "tracker", Host: "api.tracker.example", Base: "/v1", Keys: []string{"another-key", modelKey}},
		{Name: "open", Host: "open.example", Keys: []string{modelKey}},
		{Name: "shut", Host: "api.tracker.example", Base: "/v1", Keys: []string{""}},
	}})
}

// ask sends a request to the listener itself, with its address where the text has {self}, and returns the response.
func (f *fixture) ask(text string) string {
	f.t.Helper()
	conn := must.Get(net.Dial("tcp", f.addr))(f.t)
	defer conn.Close()
	_, port, _ := strings.Cut(f.addr, ":")
	text = strings.NewReplacer("{self}", f.addr, "{port}", port, "\n", "\r\n").Replace(text)
	must.Get(io.WriteString(conn, text))(f.t)
	method, _, _ := strings.Cut(text, " ")
	return readResponse(bufio.NewReader(conn), method)
}

// A client that has neither the proxy nor the CA gets a stream of its provider, without the credential that was added.
func TestAModelEndpointStreamsWhatTheOperationAllows(t *testing.T) {
	f := newModelFixture(t, "", `{"name": "ask", "method": "POST", "path": "/v1/messages", "credential": "bearer"}`)
	f.origin.script("HTTP/1.1 200 OK\nContent-Type: text/event-stream\nTransfer-Encoding: chunked\n\n" +
		"data: one\n\n{piece}data: {secret}\n\n")
	for _, key := range []string{"X-Api-Key: " + modelKey, "Authorization: Bearer " + modelKey,
		"Authorization: Bearer a-login-of-the-user's\nx-api-key: another-key"} {
		got := f.ask("POST /model/tracker/messages?beta=true HTTP/1.1\nHost: {self}\n" + key +
			"\nProxy-Authorization: Bearer " + storyToken + "\nContent-Length: 2\n\n{}")
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\n") || !strings.Contains(got, "data: one") ||
			!strings.Contains(got, "data: *****") || strings.Contains(got, storySecret) {
			t.Errorf("%s: the client got\n%s", key, got)
		}
		const want = "POST /v1/messages?beta=true HTTP/1.1\nAccept-Encoding: identity\nAuthorization: Bearer {secret}\n" +
			"Content-Length: 2\nHost: api.tracker.example\n\n{}"
		if saw := strings.TrimSpace(f.origin.saw()); saw != want {
			t.Errorf("%s: the origin saw\n%s\nwant\n%s", key, saw, want)
		}
	}
	if rows := f.close(); strings.Count(rows, "connector.proxy.proxied 200 POST "+
		"https://api.tracker.example:443/v1/messages [ask] binding=bearer/tracker/work redactions=1") != 3 {
		t.Errorf("the rows are\n%s", rows)
	}
}

// Other processes and web pages, and paths that lead elsewhere, reach nothing.
func TestAModelEndpointDeniesWhatIsNotItsClients(t *testing.T) {
	f := newModelFixture(t, "egress: passthrough",
		`{"name": "ask", "method": "POST", "path": "/v1/messages", "credential": "bearer"}`)
	const key = "X-Api-Key: " + modelKey
	for _, c := range []struct{ name, line, fields, reason string }{
		{"no key", "POST /model/tracker/messages", "", "token_missing_or_wrong"},
		{"an empty key where there is an empty one", "POST /model/shut/messages", "X-Api-Key: ", "token_missing_or_wrong"},
		{"another key", "POST /model/tracker/messages", "X-Api-Key: the-key-of-the-model-endpoin", "token_missing_or_wrong"},
		{"the proxy's token", "POST /model/tracker/messages", "Authorization: Bearer " + storyToken,
			"token_missing_or_wrong"},
		{"another model's key", "POST /model/open/messages", "X-Api-Key: another-key", "token_missing_or_wrong"},
		{"a key in the query", "POST /model/tracker/messages?key=" + modelKey, "", "token_missing_or_wrong"},
		{"a web page", "POST /model/tracker/messages", key + "\nOrigin: http://{self}", "cross_site"},
		{"a page of the same site", "POST /model/tracker/messages", key + "\nSec-Fetch-Site: same-origin", "cross_site"},
		{"a preflight", "OPTIONS /model/tracker/messages", "Origin: https://evil.example", "cross_site"},
		{"a name that was rebound", "POST /model/tracker/messages", key + "\nHost: rebind.example:{port}",
			"authority_mismatch"},
		{"another method", "GET /model/tracker/messages", key, "operation_not_matched"},
		{"another path", "POST /model/tracker/files", key, "operation_not_matched"},
		{"out of the base", "POST /model/tracker/../v1/messages", key, "malformed_request"},
		{"out of it, encoded", "POST /model/tracker/%2e%2e/v1/messages", key, "malformed_request"},
		{"a slash more", "POST /model/tracker//messages", key, "malformed_request"},
		{"an encoded slash", "POST /model/tracker/%2Fmessages", key, "malformed_request"},
		{"an authority in the path", "POST /model/tracker@evil.example/messages", key, "token_missing_or_wrong"},
		{"a model of no connector", "POST /model/open/messages", key, "host_not_allowed"},
		{"no such model", "POST /model/other/messages", key, "token_missing_or_wrong"},
		{"the model itself", "POST /model/tracker", key, "token_missing_or_wrong"},
		{"the API by the key", "GET /v1/session", "Authorization: Bearer " + modelKey, "token_missing_or_wrong"},
		{"the proxy by the key", "GET http://open.example/", "Proxy-Authorization: Bearer " + modelKey,
			"token_missing_or_wrong"},
		{"a WebSocket", "GET /model/tracker/messages", key + "\nConnection: Upgrade\nUpgrade: websocket\n" +
			"Sec-WebSocket-Version: 13\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "upgrade_not_declared"},
	} {
		fields := c.fields + "\n"
		if !strings.Contains(fields, "Host:") {
			fields += "Host: {self}\n"
		}
		got := f.ask(c.line + " HTTP/1.1\n" + strings.TrimPrefix(fields, "\n") + "\n")
		if !strings.Contains(got, `"reason":"`+c.reason+`"`) && !strings.Contains(got, `"reason": "`+c.reason+`"`) {
			t.Errorf("%s: the client got\n%s\nwant %s", c.name, got, c.reason)
		}
		if saw := f.origin.saw(); saw != "[nothing]\n" {
			t.Errorf("%s: the origin saw\n%s", c.name, saw)
		}
	}
	if rows := f.close(); strings.Contains(rows, modelKey) || strings.Contains(rows, "proxied") {
		t.Errorf("the rows are\n%s", rows)
	}
}
