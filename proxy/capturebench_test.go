package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/capture"
)

// BenchmarkCapture is what a capture adds to the processor time of the proxy when bodies of 10 MiB go to the client:
// "times" is the time with it, by that without. Turns of both alternate. Client and origin are another process, so
// that what is measured is the proxy alone.
func BenchmarkCapture(b *testing.B) {
	for _, kind := range []string{"random", "json"} {
		b.Run(kind, func(b *testing.B) { benchmarkCapture(b, kind) })
	}
}

const captureTurn = 32 // bodies in a turn

func benchmarkCapture(b *testing.B, kind string) {
	peer := startCapturePeer(b)
	w := newWorldWith(b, false, func(c *Config) {
		c.Upstream.Roots = x509.NewCertPool()
		c.Upstream.Roots.AppendCertsFromPEM(peer.origin.Root)
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(peer.origin.Addr)
	}, nil)
	peer.send(b, captureEnd{Addr: w.addr, Root: w.ca.RootPEM()})
	peer.get(b, kind, captureTurn) // warm
	var spent [2]int64
	b.ResetTimer()
	for i := range b.N {
		for _, captured := range []int{i % 2, 1 - i%2} {
			before := cpu(b)
			var f *capture.File
			if captured == 1 {
				var err error
				f, err = capture.Open(filepath.Join(b.TempDir(), "x.har"), capture.Options{Version: "test", Token: testToken})
				must.Do(b, err)
			}
			w.plane.cfg.Capture = f // between requests
			peer.get(b, kind, captureTurn)
			if f != nil {
				must.Do(b, f.Close())
				must.Do(b, os.Remove(f.Path()))
			}
			spent[captured] += cpu(b) - before
		}
	}
	b.ReportMetric(float64(spent[0])/float64(b.N)/captureTurn, "plain-cpu-ns/op")
	b.ReportMetric(float64(spent[1])/float64(b.N)/captureTurn, "cpu-ns/op")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "times")
}

// captureEnd is where one side of the benchmark serves, and the root of its certificate.
type captureEnd struct {
	Addr string
	Root []byte
}

// capturePeer is the process that is client and origin.
type capturePeer struct {
	origin captureEnd
	to     *json.Encoder
	from   *json.Decoder
}

func startCapturePeer(b *testing.B) *capturePeer {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCapturePeer$")
	cmd.Env, cmd.Stderr = append(os.Environ(), "CAPTURE_PEER=1"), os.Stderr
	in := must.Get(cmd.StdinPipe())(b)
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	p := &capturePeer{to: json.NewEncoder(in), from: json.NewDecoder(out)}
	must.Do(b, p.from.Decode(&p.origin))
	return p
}

func (p *capturePeer) send(b *testing.B, v any) {
	b.Helper()
	must.Do(b, p.to.Encode(v))
}

// get makes the peer download n bodies.
func (p *capturePeer) get(b *testing.B, kind string, n int) {
	b.Helper()
	p.send(b, []any{kind, n})
	var got int64
	must.Do(b, p.from.Decode(&got))
	if want := int64(n) * 10 << 20; got != want {
		b.Fatalf("the client got %d bytes, want %d", got, want)
	}
}

// TestCapturePeer is the other process of BenchmarkCapture.
func TestCapturePeer(t *testing.T) {
	if os.Getenv("CAPTURE_PEER") == "" {
		return
	}
	bodies := map[string][]byte{"random": make([]byte, 10<<20)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range bodies["random"] {
		bodies["random"][i] = byte(random.Uint32())
	}
	var items bytes.Buffer
	for i := 0; items.Len() < 10<<20; i++ {
		fmt.Fprintf(&items, `{"id":%d,"title":"an \"item\"\n of a list","state":"open","count":%d},`+"\n", i, random.Uint32())
	}
	bodies["json"] = items.Bytes()[:10<<20]
	authority := must.Get(ca.NewSession(ca.Options{Session: "origin"}))(t)
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := bodies[r.URL.Query().Get("q")]
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = rw.Write(body)
	}))
	origin.TLS = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	origin.StartTLS()
	defer origin.Close()
	to, from := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	must.Do(t, to.Encode(captureEnd{Addr: origin.Listener.Addr().String(), Root: authority.RootPEM()}))
	var proxy captureEnd
	must.Do(t, from.Decode(&proxy))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(proxy.Root)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true,
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.Addr, User: url.UserPassword("x", testToken)}),
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	for {
		var asked struct {
			kind string
			n    int
		}
		if from.Decode(&[]any{&asked.kind, &asked.n}) != nil {
			return
		}
		var got int64
		for range asked.n {
			res := must.Get(client.Get("https://api.good.example/v1/items?q=" + asked.kind))(t)
			n := must.Get(io.Copy(io.Discard, res.Body))(t)
			_ = res.Body.Close()
			got += n
		}
		must.Do(t, to.Encode(got))
	}
}
