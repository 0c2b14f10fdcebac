package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// BenchmarkGraphQL sends a query of 2 KiB to an operation that judges it, and the same bytes to one that does not.
func BenchmarkGraphQL(b *testing.B) {
	document := "query Q($owner: String!) {\n  viewer(owner: $owner) { pullRequests(first: 30) { nodes { ...pr } } }\n}" +
		"\nfragment pr on PullRequest {" + strings.Repeat("\n  number title head(first: 3) { id name }", 44) + "\n}"
	body := must.Get(json.Marshal(map[string]any{"query": document, "variables": map[string]string{"owner": "a"}}))(b)
	for _, path := range []string{"/v1/plain", "/graphql"} {
		b.Run(strings.TrimPrefix(path, "/"), func(b *testing.B) {
			w := newWorldWith(b, false, scripted(b, "http/1.1", func(_ int, conn *tls.Conn) { serveEnding(conn, body) }), nil)
			text := strings.Replace(graphQLSpec, `"operations":[`, `"operations":[{"name":"plain","method":"POST",`+
				`"path":"/v1/plain","hosts":["api.good.example"],"credential":"bearer"},`, 1)
			c := must.Get(spec.Load([]byte(judgedManifest), []byte(text)))(b)
			old := w.plane.grants.Load()
			w.plane.SetGrants(&Grants{Index: must.Get(spec.NewIndex([]*spec.Connector{c}))(b), Scrub: old.Scrub,
				Bound: map[spec.FQN]Bound{"github://acme/judged": old.Bound["github://acme/tracker"]}})
			conn := w.tunnel("api.good.example")
			defer conn.Close()
			request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: api.good.example\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\n\r\n%s", path, len(body), body)
			must.Do(b, exchangePost(conn, request, 10))
			w.signHead()
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			must.Do(b, exchangePost(conn, request, b.N))
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// exchangePost makes n exchanges on conn.
func exchangePost(conn *tls.Conn, request []byte, n int) error {
	buf := make([]byte, 8<<10)
	for range n {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		for got := 0; !bytes.HasSuffix(buf[:got], []byte(fixedBody)); {
			n, err := conn.Read(buf[got:])
			if got += n; err != nil {
				return fmt.Errorf("%w: %q", err, buf[:got])
			}
		}
		if !bytes.HasPrefix(buf, []byte("HTTP/1.1 200 ")) {
			return errNoFixedResponse
		}
	}
	return nil
}

// serveEnding is an origin that responds to each request that ends with a body.
func serveEnding(conn *tls.Conn, body []byte) {
	response := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(fixedBody), fixedBody)
	buf := make([]byte, 8<<10)
	for got := 0; ; {
		n, err := conn.Read(buf[got:])
		if got += n; err != nil {
			return
		}
		if !bytes.HasSuffix(buf[:got], body) {
			continue
		}
		got = 0
		if _, err := conn.Write(response); err != nil {
			return
		}
	}
}
