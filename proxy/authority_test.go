package proxy

import (
	"strings"
	"testing"
)

func TestAnAuthorityIsAPlainHostAndPort(t *testing.T) {
	for in, want := range map[string]string{
		"api.good.example:443": "api.good.example:443", "API.Good.EXAMPLE:1": "api.good.example:1", "h:65535": "h:65535", "xn--pi-7kc.good.example:443": "xn--pi-7kc.good.example:443",
		"192.0.2.1:80": "192.0.2.1:80", "[2001:DB8::1]:443": "[2001:db8::1]:443", "api.good.example": "api.good.example:8443", "[::1]": "[::1]:8443",
		strings.Repeat("a", 63) + ".example:443": strings.Repeat("a", 63) + ".example:443",
	} {
		if a, err := ParseAuthority(in, 8443); err != nil || a.String() != want {
			t.Errorf("ParseAuthority(%q) = %s, %v, want %s", in, a, err, want)
		}
	}
}

func TestAnAuthorityThatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	for name, in := range map[string]string{
		"userinfo": "a@h:443", "no host": ":443", "empty": "", "empty port": "h:", "leading zero": "h:0443", "zero": "h:0", "sign": "h:+443", "too large": "h:65536", "wraps": "h:4294967739",
		"six digits": "h:100443", "two ports": "h:443:443", "name of a port": "h:https", "blank": "h :443", "escape": "h%2e:443", "path": "h/x:443",
		"trailing dot": "h.example.:443", "leading dot": ".h:443", "empty label": "a..b:443", "leading dash": "-a.b:443", "trailing dash": "a-.b:443", "underscore": "a_b:443", "not ASCII": "ä.b:443",
		"long label": strings.Repeat("a", 64) + ".b:443", "long name": strings.Repeat("a.", 127) + "b:443",
		"ends in a number": "h.1:443", "inet_aton": "127.1:443", "decimal": "2130706433:443", "octal": "0177.0.0.1:443", "hexadecimal": "h.0x7f:443", "leading zero in a quad": "127.0.0.01:443",
		"IPv4 in brackets": "[127.0.0.1]:443", "name in brackets": "[h]:443", "zone": "[fe80::1%lo]:443", "escaped zone": "[fe80::1%25lo]:443", "no end": "[::1:443", "two brackets": "[[::1]]:443",
		"rest": "[::1]x:443", "IPv6 without brackets": "::1",
	} {
		if a, err := ParseAuthority(in, 443); err == nil {
			t.Errorf("%s: ParseAuthority(%q) = %s, want an error", name, in, a)
		}
	}
	if a, err := ParseAuthority("h", 0); err == nil {
		t.Errorf("without a port: %s, want an error", a)
	}
}
