package hosts

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

// A connector names only hosts that a request can name, written as a request
// may write them, and of these only names of two labels or more.
func TestNamedHostsFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			h, err := Parse(c.Host)
			switch want := (Pattern{Name: c.Name, Port: 443}); {
			case c.Name != "" && !strings.Contains(c.Name, "."):
				if err == nil || !strings.Contains(err.Error(), "one label") {
					t.Errorf("Parse(%q) = %v, %v, want an error about its one label", c.Host, h, err)
				}
			case c.Name != "" && (err != nil || h != want):
				t.Errorf("Parse(%q) = %v, %v, want %v", c.Host, h, err, want)
			case c.Name == "" && err == nil:
				t.Errorf("Parse(%q) = %v, want an error", c.Host, h)
			}
		})
	}
}

func TestHostsThatASpecMayNotName(t *testing.T) {
	for _, s := range []string{
		"https://x.example", "x.example/path", "u@x.example", "*", "*.test", "",
		"x.example:0", "x.example:99999", "x.example:", "x.example:+443", "x.example:0443",
		"127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "169.254.169.254", "[::1]", "::1",
		"localhost", "a.localhost", "host.docker.internal", "aileron.internal", "printer.local",
		"x.test..", ".x.test", "x..test", "-x.test", "x-.test", "x.test#", "x.test?", "x.test ",
		"*.*.test", "a.*.test", "x*.test", "аpi.test", "ß.test",
		strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 130) + "test",
	} {
		if h, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", s, h)
		}
	}
	for s, want := range map[string]string{
		"X.Test": "x.test:443", "x.test:8443": "x.test:8443", "*.X.test": "*.x.test:443",
		"xn--pi-7ia.test": "xn--pi-7ia.test:443", "a1.2b.test:80": "a1.2b.test:80",
		"x.test.": "x.test:443", "x.test.:80": "x.test:80", "*.x.test.": "*.x.test:443", "my_x._y.test": "my_x._y.test:443",
	} {
		if h, err := Parse(s); err != nil || h.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %s", s, h, err, want)
		}
	}
}

func TestWhatIsNoNameIsRefusedForWhatItIs(t *testing.T) {
	for s, want := range map[string]string{
		"127.0.0.1": "is an address", "192.0.2.1:8443": "is an address",
		"1.2.3": "not a host name", "0x7f.0.0.1": "not a host name",
		"printer": "one label", "*.test": "a whole top-level domain",
		"http://docs.test/a": `is a URL; name the host alone, as in "docs.test"`,
	} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want an error that says %q", s, err, want)
		}
	}
}
