package front

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
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
		{Listener{}, loopback, "localhost.:3199", true}, // the same name
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

// Node's agents send the proxy's own address as the Host of a CONNECT, and a client of HTTP/1.0 none.
func TestTheRequestTargetOfAConnectDecides(t *testing.T) {
	s := newSession(t, Listener{}, unchanged)
	addr := s.at.String()
	port := addr[strings.LastIndexByte(addr, ':'):]
	for host, want := range map[string]int{
		addr: 200, "localhost" + port: 200, "api.good.example": 200, "api.good.example:443": 200, "API.good.example": 200,
		"q.good.example:443": 421, "evil.test": 421, "127.0.0.1:1": 421, "api.good.example:80": 421, "": 200,
	} {
		head := "CONNECT api.good.example:443 HTTP/1.1\r\nHost: " + host + "\r\n"
		if host == "" {
			head = "CONNECT api.good.example:443 HTTP/1.0\r\n"
		}
		conn := s.dial(head + "Proxy-Authorization: Bearer " + testToken + "\r\n\r\n")
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}))(t)
		if res.StatusCode != want {
			t.Errorf("a CONNECT with the Host %s: %d, want %d", host, res.StatusCode, want)
		}
		if want == 421 {
			body, _ := io.ReadAll(res.Body)
			s.denied(host, res, string(body), proxy.ReasonAuthority)
		}
	}
}

func TestAMissingTokenIsAskedForAndRecorded(t *testing.T) {
	s := newSession(t, Listener{}, unchanged)
	for _, auth := range []string{"", "Proxy-Authorization: Basic eDp3cm9uZw==\r\n",
		"Proxy-Authorization: Bearer wrong\r\n"} {
		res, body := s.say("CONNECT api.good.example:443 HTTP/1.1\r\nHost: api.good.example:443\r\n" + auth + "\r\n")
		s.denied(auth, res, body, proxy.ReasonToken)
		if res.StatusCode != 407 || res.Header.Get("Proxy-Authenticate") == "" {
			t.Errorf("%q: %d %v", auth, res.StatusCode, res.Header)
		}
	}
}

func TestGoproxyNeverDialsOrVerifiesForUs(t *testing.T) {
	h := newFront(t, unchanged).front.newHandler(t.Context(), Listener{})
	if _, err := h.gp.Tr.DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, errNeverDial) {
		t.Errorf("Tr dials: %v", err)
	}
	if _, err := h.gp.ConnectDial("tcp", "127.0.0.1:1"); !errors.Is(err, errNeverDial) {
		t.Errorf("ConnectDial dials: %v", err)
	}
	if h.gp.Tr.Proxy != nil {
		t.Error("Tr reads the environment")
	}
}
