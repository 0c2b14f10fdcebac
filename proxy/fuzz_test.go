package proxy

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

// What target takes without a doubt has one reading: cleaning, decoding and
// encoding it again give what came.
func FuzzTarget(f *testing.F) {
	a := Authority{Host: "api.good.example", Port: 443}
	f.Fuzz(func(t *testing.T, raw, host string) {
		got, doubt, d := target(a, "https", "GET", raw, host)
		if d != nil || doubt != "" {
			return
		}
		if host != "" && !strings.EqualFold(strings.TrimSuffix(host, ":443"), a.Host) {
			t.Fatalf("the Host %q passed for %s", host, a)
		}
		decoded, err := url.PathUnescape(got.Path)
		if err != nil {
			t.Fatalf("took the path %q: %v", got.Path, err)
		}
		clean := path.Clean(decoded)
		if strings.HasSuffix(decoded, "/") && clean != "/" {
			clean += "/"
		}
		if clean != decoded {
			t.Errorf("took the path %q, which a server reads as %q", got.Path, clean)
		}
		if strings.ContainsAny(decoded, "\\\x00;%") || strings.Count(got.Path, "/") != strings.Count(decoded, "/") {
			t.Errorf("took the path %q, which decodes to %q", got.Path, decoded)
		}
		u := url.URL{Path: decoded, RawPath: got.Path, RawQuery: got.Query}
		if u.EscapedPath() == got.Path { // else outbound refuses it
			if sent := u.RequestURI(); !strings.HasSuffix(strings.TrimSuffix(raw, "?"), sent) && raw != sent && !strings.HasSuffix(raw, "://"+strings.TrimSuffix(sent, "/")) && !strings.HasPrefix(raw, "https://") {
				t.Errorf("judged %q and would send %q", raw, sent)
			}
		}
	})
}

// What ParseAuthority takes is canonical: it prints and parses to itself, and
// no URL parser finds another host in it.
func FuzzAuthority(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAuthority(s, 443)
		if err != nil {
			return
		}
		if again, err := ParseAuthority(a.String(), 0); err != nil || again != a {
			t.Fatalf("%q is %v, which parses to %v, %v", s, a, again, err)
		}
		u, err := url.Parse("https://" + a.String() + "/")
		if err != nil || u.Hostname() != a.Host || u.User != nil {
			t.Fatalf("%q is %v, and a URL parser finds %v, %v", s, a, u, err)
		}
		if r, err := http.NewRequest("GET", u.String(), nil); err != nil || r.Host != a.String() {
			t.Fatalf("%q is %v, and net/http asks for %v, %v", s, a, r, err)
		}
	})
}
