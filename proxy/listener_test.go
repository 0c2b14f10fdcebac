package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

func TestAListenerKnowsItsNames(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3199}
	bridge := &net.TCPAddr{IP: net.ParseIP("::ffff:172.17.0.1"), Port: 3199}
	unix := &net.UnixAddr{Name: "/x/proxy.sock", Net: "unix"}
	sealed, alias := Listener{Names: []string{"127.0.0.1:3128", "localhost:3128"}},
		Listener{Names: []string{"host.docker.internal:3199"}}
	for _, c := range []struct {
		listener Listener
		at       net.Addr
		host     string
		want     bool
	}{
		{Listener{}, loopback, "127.0.0.1:3199", true},
		{Listener{}, loopback, "localhost:3199", true},
		{Listener{}, loopback, "LOCALHOST:3199", true},
		{Listener{}, loopback, "[::1]:3199", true},
		{Listener{}, loopback, "aileron.internal", true},
		{Listener{}, loopback, "127.0.0.1", false},
		{Listener{}, loopback, "127.0.0.1:80", false},
		{Listener{}, loopback, "127.0.0.2:3199", false},
		{Listener{}, loopback, "0.0.0.0:3199", false},
		{Listener{}, loopback, "[::]:3199", false},
		{Listener{}, loopback, "[::ffff:127.0.0.1]:3199", false},
		{Listener{}, loopback, "127.0.0.1.nip.io:3199", false},
		{Listener{}, loopback, "rebind.network:3199", false},
		{Listener{}, loopback, "aileron.internal.evil.test", false},
		{Listener{}, loopback, "localhost.:3199", false},
		{Listener{}, loopback, "u@localhost:3199", false},
		{Listener{}, bridge, "172.17.0.1:3199", true},
		{Listener{}, bridge, "127.0.0.1:3199", false},
		{alias, bridge, "host.docker.internal:3199", true},
		{alias, bridge, "host.docker.internal:3198", false},
		{sealed, unix, "127.0.0.1:3128", true},
		{sealed, unix, "localhost:3128", true},
		{sealed, unix, "aileron.internal", true},
		{sealed, unix, "evil.test:3128", false},
		{Listener{}, unix, "127.0.0.1:3128", false},
	} {
		if got := c.listener.isNamed(c.host, c.at); got != c.want {
			t.Errorf("named(%q) at %v with %v = %v, want %v", c.host, c.at, c.listener.Names, got, c.want)
		}
	}
}

// say sends one request to w's listener as it is.
func (w *world) say(request string) *http.Response {
	w.t.Helper()
	c := w.sends(request)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(w.t, err)
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// sends opens a connection to w's listener and sends what is given.
func (w *world) sends(request string) net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	must(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testPatience))
	_, err = fmt.Fprint(c, request)
	must(w.t, err)
	return c
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
			if len(w.rows()) != before+1 || Reason(row.Reason) != reasonAuthority ||
				row.Source != audit.SourceRequestBoundary || res.Header.Get("X-Aileron-Audit-Id") != row.ID {
				t.Errorf("%s at %s: row %+v", path, host, row)
			}
		}
	}
}

// Node's agents send the proxy's own address as the Host of a CONNECT.
func TestTheRequestTargetOfAConnectDecides(t *testing.T) {
	w := newWorld(t, hello)
	port := w.addr[strings.LastIndexByte(w.addr, ':'):]
	const credentials = "Proxy-Authorization: Bearer " + testToken + "\r\n\r\n"
	for host, want := range map[string]int{
		w.addr: 200, "localhost" + port: 200, "api.good.example": 200, "api.good.example:443": 200, "API.good.example": 200,
		"q.good.example:443": 421, "evil.test": 421, "127.0.0.1:1": 421, "api.good.example:80": 421,
	} {
		res := w.say("CONNECT api.good.example:443 HTTP/1.1\r\nHost: " + host + "\r\n" + credentials)
		if res.StatusCode != want {
			t.Errorf("a CONNECT with the Host %s: %d, want %d", host, res.StatusCode, want)
		}
		if row := res.Header.Get("X-Aileron-Audit-Id"); want == 421 &&
			(row != w.last().ID || Reason(w.last().Reason) != reasonAuthority || w.last().ConnectorFQN == "") {
			t.Errorf("a CONNECT with the Host %s: row %+v", host, w.last())
		}
	}
	if len(w.requests()) != 0 {
		t.Errorf("%d requests reached the origin", len(w.requests()))
	}
}
