package hostport_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

func ExampleParse() {
	a, err := hostport.Parse("API.Example", 443)
	fmt.Println(a, err)

	_, err = hostport.Parse("127.1:443", 0)
	fmt.Println(err)
	// Output:
	// api.example:443 <nil>
	// it ends in a number, which resolvers may read as an address
}

func TestNamesHaveOneReading(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			name, err := hostport.ParseName(c.Host)
			if name != c.Name || (err == nil) != (c.Name != "") {
				t.Errorf("ParseName(%q) = %q, %v, want %q", c.Host, name, err, c.Name)
			}
			a, err := hostport.Parse(c.Host+":8443", 0)
			if want := (hostport.Authority{Host: c.Name, Port: 8443}); c.Name != "" && a != want {
				t.Errorf("Parse(%q) = %v, %v, want %v", c.Host+":8443", a, err, want)
			}
			if c.Name == "" && err == nil {
				t.Errorf("Parse(%q) = %v, want an error", c.Host+":8443", a)
			}
			if err != nil && c.Host != "" && c.Host != "." && strings.Contains(err.Error(), c.Host) {
				t.Errorf("the error %q repeats the host, which may hold a password", err)
			}
		})
	}
	for _, address := range []string{"127.0.0.1", "::1", "[::1]"} {
		if name, err := hostport.ParseName(address); err == nil {
			t.Errorf("ParseName(%q) = %q, want an error: it is an address", address, name)
		}
	}
}

func TestAddressesHaveOneReading(t *testing.T) {
	for s, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:DB8::1]:80": "2001:db8::1", "[::ffff:10.0.0.1]:80": "::ffff:10.0.0.1",
	} {
		a, err := hostport.Parse(s, 0)
		if err != nil || a.Host != want || a.Addr != netip.MustParseAddr(want) || a.Port != 80 {
			t.Errorf("Parse(%q) = %+v, %v, want the address %s", s, a, err, want)
		}
	}
	for why, s := range map[string]string{
		"a zone": "[fe80::1%lo]:443", "an escaped zone": "[fe80::1%25lo]:443", "no closing bracket": "[::1:443",
		"two brackets": "[[::1]]:443", "something after the bracket": "[::1]x:443", "IPv4 in brackets": "[127.0.0.1]:443",
		"a name in brackets": "[h]:443", "IPv6 without brackets": "::1", "empty brackets": "[]:443",
	} {
		if a, err := hostport.Parse(s, 443); err == nil {
			t.Errorf("Parse(%q) = %v, want an error: it has %s", s, a, why)
		}
	}
}

func TestPortsHaveOneSpelling(t *testing.T) {
	for s, want := range map[string]uint16{"1": 1, "443": 443, "65535": 65535} {
		if got, err := hostport.ParsePort(s); got != want || err != nil {
			t.Errorf("ParsePort(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for why, s := range map[string]string{
		"empty": "", "zero": "0", "a leading zero": "0443", "a plus": "+443", "a minus": "-1", "too large": "65536",
		"six digits": "100443", "one that wraps to 443": "4294967739", "a name": "https", "hexadecimal": "0x1bb",
		"a space": "443 ", "an underscore": "4_43", "two ports": "443:443",
	} {
		if got, err := hostport.ParsePort(s); err == nil {
			t.Errorf("ParsePort(%q) = %d, want an error: it is %s", s, got, why)
		}
		for _, host := range []string{"h:", "192.0.2.1:", "[::1]:"} {
			if a, err := hostport.Parse(host+s, 443); err == nil {
				t.Errorf("Parse(%q) = %v, want an error: the port is %s", host+s, a, why)
			}
		}
	}
}

func TestDefaultPort(t *testing.T) {
	for _, host := range []string{"h", "192.0.2.1", "[::1]"} {
		if a, err := hostport.Parse(host, 8443); err != nil || a.Port != 8443 {
			t.Errorf("Parse(%q, 8443) = %v, %v, want the port 8443", host, a, err)
		}
		if a, err := hostport.Parse(host, 0); err == nil {
			t.Errorf("Parse(%q, 0) = %v, want an error: it has no port", host, a)
		}
	}
}

func TestHostHeader(t *testing.T) {
	for _, c := range []struct{ authority, scheme, want string }{
		{"h.example:443", "https", "h.example"},
		{"h.example:80", "http", "h.example"},
		{"h.example:80", "https", "h.example:80"},
		{"h.example:443", "http", "h.example:443"},
		{"h.example:8443", "https", "h.example:8443"},
		{"[::1]:443", "https", "[::1]"},
		{"[::1]:8443", "https", "[::1]:8443"},
	} {
		a := must.Get(hostport.Parse(c.authority, 0))(t)
		if got := a.HostHeader(c.scheme); got != c.want {
			t.Errorf("HostHeader of %s over %s = %q, want %q", c.authority, c.scheme, got, c.want)
		}
	}
}

// An authority that Parse accepts is canonical: it prints and parses to itself,
// and no URL parser finds another host in it.
func FuzzParse(f *testing.F) {
	for _, c := range hosttest.Cases {
		f.Add(c.Host)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := hostport.Parse(s, 443)
		if err != nil {
			return
		}
		if again, err := hostport.Parse(a.String(), 0); err != nil || again != a {
			t.Fatalf("%q is %v, which parses to %v, %v", s, a, again, err)
		}
		u, err := url.Parse("https://" + a.String() + "/")
		if err != nil || u.Hostname() != a.Host || u.User != nil {
			t.Fatalf("%q is %v, and a URL parser finds %v, %v", s, a, u, err)
		}
		if r, err := http.NewRequest("GET", u.String(), nil); err != nil || r.Host != a.String() {
			t.Fatalf("%q is %v, and net/http asks for %v, %v", s, a, r, err)
		}
		if _, err := netip.ParseAddr(a.Host); (err == nil) != a.Addr.IsValid() {
			t.Fatalf("%q is %+v, and netip finds an address: %v", s, a, err == nil)
		}
	})
}
