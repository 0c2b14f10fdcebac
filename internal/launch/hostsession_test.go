package launch

import (
	"net"
	"slices"
	"testing"
)

// What is printed as api_url is a name under which the API answers.
func TestAListenersAddressIsOneThatItRespondsTo(t *testing.T) {
	for _, c := range []struct {
		asked string
		at    net.TCPAddr
		addr  string
		names []string
	}{
		{"127.0.0.1:0", net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3199}, "127.0.0.1:3199", nil},
		{"0.0.0.0:3199", net.TCPAddr{IP: net.IPv4zero, Port: 3199}, "127.0.0.1:3199", nil},
		{":3199", net.TCPAddr{IP: net.IPv6unspecified, Port: 3199}, "127.0.0.1:3199", nil},
		{"[::1]:0", net.TCPAddr{IP: net.IPv6loopback, Port: 3199}, "[::1]:3199", nil},
		{"Build.Example:0", net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 3199}, "192.0.2.7:3199",
			[]string{"build.example:3199"}},
	} {
		if addr, names := reachable(&c.at), listenNames(c.asked, &c.at); addr != c.addr || !slices.Equal(names, c.names) {
			t.Errorf("--listen %s: %s, %q; want %s, %q", c.asked, addr, names, c.addr, c.names)
		}
		want := slices.Contains([]string{"0.0.0.0:3199", ":3199", "Build.Example:0"}, c.asked)
		if exposed := isExposed(&c.at); exposed != want {
			t.Errorf("--listen %s: exposed is %v", c.asked, exposed)
		}
	}
}
