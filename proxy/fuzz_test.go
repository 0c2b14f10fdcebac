package proxy

import (
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
		if host != "" && !strings.EqualFold(strings.TrimSuffix(strings.TrimSuffix(host, ":443"), "."), a.Host) {
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
			if sent := u.RequestURI(); !strings.HasSuffix(strings.TrimSuffix(raw, "?"), sent) && raw != sent &&
				!strings.HasSuffix(raw, "://"+strings.TrimSuffix(sent, "/")) && !strings.HasPrefix(raw, "https://") {
				t.Errorf("judged %q and would send %q", raw, sent)
			}
		}
	})
}
