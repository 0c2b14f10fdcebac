package proxy

import (
	"strings"
	"testing"
)

func TestAPathThatCouldBeReadInTwoWaysIsNamed(t *testing.T) {
	const (
		dot, empty, odd, broken = "dot segment", "empty segment", "must be escaped", "broken escape"
		control, slash, percent = "escaped control character", "escaped slash", "escaped percent sign"
		needless, utf8          = "needs no escape", "not UTF-8"
	)
	for path, want := range map[string]string{
		"": "begin with a slash", "v1": "begin with a slash", "/..": dot, "/.": dot, "/a/../b": dot, "/a/./b": dot,
		"//a": empty, "/a//b": empty, "///": empty,
		`/a\b`: odd, "/a;b": odd, "/a#b": odd, "/a|b": odd, "/a^b": odd, "/a`b": odd, "/a{b": odd, "/a}b": odd,
		"/a<b": odd, "/a>b": odd, `/a"b`: odd, "/a b": odd, "/a\tb": odd, "/a\x7fb": odd, "/\xc3\xa4": odd,
		"/a%": broken, "/a%2": broken, "/a%zz": broken, "/a%2g": broken,
		"/a%00": control, "/a%0d%0a": control, "/a%1f": control, "/a%7F": control, "/a%2fb": slash, "/a%2Fb": slash,
		"/a%5cb": slash, "/a%25": percent, "/a%252e": percent,
		"/%2e%2e": needless, "/%2E": needless, "/%41": needless, "/%7a": needless, "/%30": needless, "/a%2d": needless,
		"/a%5f": needless, "/a%7e": needless,
		"/%c0%ae": utf8, "/%e0%80%ae": utf8, "/a%ff": utf8,
		"/": "", "/a": "", "/a/": "", "/...": "", "/a.b": "", "/a%20b": "", "/a%3fb": "", "/a%23b": "", "/%c3%a4": "",
		"/a:b@c!$&'()*+,=~": "", "/.a": "",
	} {
		got := ambiguous(path)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("ambiguous(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestATargetIsItsTunnels(t *testing.T) {
	a := Authority{Host: "h.example", Port: 8443}
	for name, c := range map[string]struct {
		raw, host string
		reason    Reason
		doubt     string
	}{
		"path":               {"/v1?q", "h.example:8443", "", ""},
		"capitals":           {"/v1", "H.Example:8443", "", ""},
		"absolute":           {"https://h.example:8443/v1", "h.example:8443", "", ""},
		"absolute, no path":  {"https://h.example:8443?q", "h.example:8443", "", ""},
		"no Host":            {"/v1", "", "", ""},
		"another Host":       {"/v1", "other.example:8443", ReasonAuthority, ""},
		"another port":       {"/v1", "h.example:443", ReasonAuthority, ""},
		"two hosts":          {"/v1", "h.example:8443, other.example", ReasonAuthority, ""},
		"another absolute":   {"https://other.example:8443/v1", "h.example:8443", ReasonAuthority, ""},
		"userinfo":           {"https://x@h.example:8443/v1", "h.example:8443", ReasonAuthority, ""},
		"clear":              {"http://h.example:8443/v1", "h.example:8443", ReasonMalformed, ""},
		"asterisk":           {"*", "h.example:8443", ReasonMalformed, ""},
		"relative":           {"v1", "h.example:8443", ReasonMalformed, ""},
		"no authority":       {"https:///v1", "h.example:8443", ReasonMalformed, ""},
		"nothing":            {"https://", "h.example:8443", ReasonMalformed, ""},
		"semicolon":          {"/v1?a;b", "h.example:8443", "", "';'"},
		"semicolon, in path": {"/v1;a", "h.example:8443", "", "must be escaped"},
		"long":               {"/" + strings.Repeat("a", maxPath), "h.example:8443", "", "longer than"},
	} {
		got, doubt, d := target(a, "https", "GET", c.raw, c.host)
		switch {
		case c.reason != "":
			if d == nil || d.Reason != c.reason {
				t.Errorf("%s: got %+v, %v, want %s", name, got, d, c.reason)
			}
		case d != nil || !strings.Contains(doubt, c.doubt) || c.doubt == "" && doubt != "":
			t.Errorf("%s: doubt %q, %v, want %q", name, doubt, d, c.doubt)
		case got.Host != a.Host || got.Port != a.Port || !strings.HasPrefix(got.Path, "/"):
			t.Errorf("%s: the target is %+v", name, got)
		}
	}
}

func TestARefusedPathIsWrittenUpToItsFirstOddCharacter(t *testing.T) {
	for raw, want := range map[string]string{
		"/v1/items?q=secret": "/v1/items", "/v1/%zz": "/v1/", "https://h/a b": "/a", "https://h?q": "",
		"/a\nb": "/a", "/" + strings.Repeat("a", 5000): "/" + strings.Repeat("a", maxPath-1),
	} {
		if got := plainPath(raw); got != want {
			t.Errorf("plainPath(%.40q) = %.40q, want %.40q", raw, got, want)
		}
	}
}
