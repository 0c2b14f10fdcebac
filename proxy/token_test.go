package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A connector's command sends no token to a sealed listener, and elsewhere that of a proxy. Nothing else may do so.
func TestOnlyACommandNeedsNoBearer(t *testing.T) {
	const command = "Accept: application/vnd.aileron.shim.v1\r\nContent-Type: application/json\r\n"
	const proxied = "Proxy-Authorization: Bearer " + testToken + "\r\n"
	w := newWorld(t, hello)
	open, sealed := w.addr, w.sealed()
	for _, c := range []struct {
		why, method, path, head string
		open, sealed            bool // whether it is let in at a listener of that kind
	}{
		{"a command", "POST", operationsPath, command, false, true},
		{"a command, as JSON", "POST", operationsPath, strings.Replace(command, "v1", "v1+json", 1), false, true},
		{"a command with a proxy's token", "POST", operationsPath, command + proxied, true, true},
		{"a command with another token", "POST", operationsPath, command + "Proxy-Authorization: Bearer x\r\n", false, true},
		{"another client with a proxy's token", "POST", operationsPath, "Accept: */*\r\nContent-Type: application/json\r\n" +
			proxied, false, false},
		{"a form of a web page", "POST", operationsPath, "Accept: application/vnd.aileron.shim.v1\r\n" +
			"Content-Type: text/plain\r\n" + proxied, false, false},
		{"a whole request in a command's form", "POST", requestsPath, command + proxied, false, false},
		{"a link", "GET", "/v1/session", command + proxied, false, false},
		{"a list that has it", "POST", operationsPath, strings.Replace(command, "v1", "v1, */*", 1) + proxied, false, false},
	} {
		for addr, want := range map[string]bool{open: c.open, sealed: c.sealed, open + "/direct": c.open} {
			at, direct := strings.CutSuffix(addr, "/direct")
			w.addr = at
			target := "http://" + APIHost + c.path
			if direct {
				target = c.path
			}
			res := w.say(c.method + " " + target + " HTTP/1.1\r\nHost: " + APIHost + "\r\n" + c.head +
				"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
			body, _ := io.ReadAll(res.Body)
			denied := strings.Contains(string(body), string(ReasonToken))
			if denied == want || !denied && !strings.Contains(string(body), string(ReasonArguments)) {
				t.Errorf("%s, sealed %v: let in %v, want %v: %s", c.why, addr == sealed, !denied, want, body)
			}
		}
	}
}

// sealed serves w's plane at a listener that is sealed, and returns its address.
func (w *world) sealed() string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = w.serve(ctx, l, true, false) }()
	w.t.Cleanup(func() { cancel(); <-served })
	return l.Addr().String()
}

func TestTheAPIRespondsOnlyToItsOwnHosts(t *testing.T) {
	w := newWorld(t, hello)
	port := w.addr[strings.LastIndexByte(w.addr, ':'):]
	for host, want := range map[string]int{
		"127.0.0.1" + port: 200, "localhost" + port: 200, "[::1]" + port: 200, APIHost: 200,
		"evil.test": 421, "rebind.network" + port: 421, "0.0.0.0" + port: 421, "[::]" + port: 421, "127.0.0.1.nip.io" +
			port: 421,
	} {
		for _, path := range []string{"/v1/session", "/healthz"} {
			before := len(w.rows())
			res := w.say("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + testToken + "\r\n\r\n")
			if res.StatusCode != want {
				t.Errorf("%s at %s: %d, want %d", path, host, res.StatusCode, want)
			}
			if want == 200 {
				continue
			}
			row := w.last()
			if len(w.rows()) != before+1 || Reason(row.Reason) != ReasonAuthority ||
				row.Source != audit.SourceRequestBoundary || res.Header.Get("X-Aileron-Audit-Id") != row.ID {
				t.Errorf("%s at %s: row %+v", path, host, row)
			}
		}
	}
}
