package images

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// server answers on two ports of the box until its path /end was asked for.
const server = `
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(b"from the box, port %d" % self.server.server_port)
        if self.path == "/end": threading.Thread(target=both[0].shutdown).start()
    def log_message(self, *args): pass
both = [http.server.ThreadingHTTPServer(("127.0.0.1", p), Handler) for p in (8000, 8001)]
threading.Thread(target=both[1].serve_forever, daemon=True).start()
both[0].serve_forever()
`

func TestAPublishedPortIsReachedFromLoopbackAlone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		port := harness.FreePort(t)
		ended := make(chan result, 1)
		go func() {
			ended <- p.box(recipes.Toolbox().Ref, []string{"--port", fmt.Sprintf("%d:8000", port)},
				[]string{"python3", "-c", server})
		}()
		client := http.Client{Timeout: harness.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
		get := func(path string) string {
			res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
			if err != nil {
				return ""
			}
			defer res.Body.Close()
			data, _ := io.ReadAll(res.Body)
			return string(data)
		}
		deadline, tick := time.After(harness.Patience), time.NewTicker(200*time.Millisecond)
		defer tick.Stop()
		for get("/") != "from the box, port 8000" {
			select {
			case <-tick.C:
			case r := <-ended:
				t.Fatalf("exit %d before it answered\n%s%s", r.code, r.out, r.err)
			case <-deadline:
				t.Fatal("the port does not answer")
			}
		}
		// Not at another address of this host.
		addresses, _ := net.InterfaceAddrs()
		for _, a := range append(addresses, &net.IPNet{IP: net.IPv4(127, 0, 0, 2)}) {
			ip, ok := a.(*net.IPNet)
			if !ok || ip.IP.Equal(net.IPv4(127, 0, 0, 1)) {
				continue
			}
			if conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip.IP.String(), fmt.Sprint(port)), time.Second); err == nil {
				_ = conn.Close()
				t.Errorf("%s has the port too", ip.IP)
			}
		}
		before := len(p.rows("--event", "sandbox.port.connected"))
		for range 3 {
			if got := get("/"); got != "from the box, port 8000" {
				t.Errorf("a client reads %q", got)
			}
		}
		if n := len(p.rows("--event", "sandbox.port.connected")); n != before+3 {
			t.Errorf("%d rows of three connections", n-before)
		}
		// A second session cannot have it.
		r := p.box("", []string{"--port", fmt.Sprint(port)}, []string{"true"})
		if r.code != 1 || !strings.Contains(r.err, "it is in use") || !strings.Contains(r.err, "hint: ") {
			t.Errorf("a port in use: exit %d\n%s", r.code, r.err)
		}
		get("/end")
		r = <-ended
		if r.code != 0 || !strings.Contains(r.err, fmt.Sprintf("127.0.0.1:%d is port 8000 of the sandbox", port)) {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		if conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			_ = conn.Close()
			t.Error("the port stays open")
		}
	})
}
