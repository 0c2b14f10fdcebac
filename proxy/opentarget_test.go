package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

var oddTargets = []string{"/s?q=日本", `/a|b{c}^"<d>` + "`e", `/a\b`, "/日本/ä?|", "/a?\xff\xa0",
	"/a%2fb//c/..?x=%zz", "/a|b?"}

func TestAnOddTargetArrivesByteForByte(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 %t", h2), func(t *testing.T) {
			w := newWorldOf(t, h2, hello)
			for i, target := range oddTargets {
				if h2 {
					path, query, _ := strings.Cut(target, "?")
					req := &http.Request{Method: "GET", Header: http.Header{}, URL: &url.URL{Scheme: "https",
						Host: "plain.good.example", Opaque: path, RawQuery: query, ForceQuery: strings.HasSuffix(target, "?")}}
					res := must.Get(w.h2client().Do(req))(t)
					_, _ = io.Copy(io.Discard, res.Body) // a client that leaves has another row
					_ = res.Body.Close()
				} else {
					conn := w.tunnel("plain.good.example")
					_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: plain.good.example\r\nConnection: close\r\n\r\n", target)
					res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					_ = conn.Close()
				}
				if seen := w.requests(); len(seen) != i+1 || seen[i].RequestURI != target {
					t.Fatalf("%q: %d requests, the last is %q", target, len(seen), seen[len(seen)-1].RequestURI)
				}
				path, _, _ := strings.Cut(target, "?")
				whole := strings.NewReplacer("日本", "%E6%97%A5%E6%9C%AC", "ä", "%C3%A4").Replace(path)
				if row := w.last(); row.Status != 200 || row.Path != whole {
					t.Errorf("%q: the row has %d, %q, want %q", target, row.Status, row.Path, whole)
				}
			}
		})
	}
}

// What decides by a path or a query, or gives a credential, must read a target as its server does.
func TestAnOddTargetGoesToOpenHostsAlone(t *testing.T) {
	c, err := spec.Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://a/b",
		"version":"1.0.0"},"tools":[{"name":"t","operations":[{"name":"open","hosts":["open.test"]},
		{"name":"open2","hosts":["credential.test","path.test","*.wild.test","query.test"]},
		{"name":"c","method":"GET","path":"/c","hosts":["credential.test","x.wild.test"],"credential":"bearer"},
		{"name":"p","method":"GET","path":"/p/{x...}","hosts":["path.test"]},
		{"name":"q","method":"GET","hosts":["query.test"],"query":"declared","inputs":[{"name":"x","in":"query"}]}]}]}`))
	must.Do(t, err)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for host, open := range map[string]bool{"open.test": true, "credential.test": false, "path.test": false,
		"x.wild.test": false, "y.wild.test": true, "query.test": false, "other.test": true, APIHost: false} {
		for _, target := range append([]string{"/plain?x=1"}, oddTargets...) {
			q := Question{Index: index, Passthrough: true, Authority: Authority{Host: host, Port: 443}, Scheme: "https",
				Method: "POST", Target: target, Host: host}
			d := Decide(q)
			odd := target != "/plain?x=1" && !strings.Contains(target, "%2f") // which real clients send
			if host == APIHost {                                              // whose paths are compared with literals
				odd = strings.ContainsFunc(target, func(r rune) bool { return r >= 0x80 })
			}
			if odd && !open && (d.Verdict != Deny || d.Reason != ReasonMalformed) {
				t.Errorf("%s, %q: %v %s, want a denial", host, target, d.Verdict, d.Reason)
			}
			if open && (d.Verdict == Deny || d.Target.Path+"?"+d.Target.Query != target && strings.Contains(target, "?")) {
				t.Errorf("%s, %q: %v %s %+v", host, target, d.Verdict, d.Reason, d.Target)
			}
		}
	}
	// net/url would take the path for an authority.
	for _, target := range []string{"//evil.test/a|b", "//evil.test/a?日本", "/a b", "/a#b", "/a\x7f"} {
		d := Decide(Question{Index: index, Authority: Authority{Host: "open.test", Port: 443}, Scheme: "https", Method: "GET",
			Target: target, Host: "open.test"})
		if d.Verdict != Deny || d.Reason != ReasonMalformed {
			t.Errorf("%q: %v %s, want a denial", target, d.Verdict, d.Reason)
		}
	}
}
