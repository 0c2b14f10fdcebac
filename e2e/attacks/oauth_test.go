package attacks

import (
	"net/netip"
	"strings"
)

// oau: access tokens of OAuth2, and where new ones come from.
func oau() category {
	const refresh = "not built yet: the refresh of access tokens"
	return category{name: "OAU", unrun: map[string]string{
		"OAU-01": refresh, "OAU-02": refresh, "OAU-04": refresh, "OAU-05": refresh, "OAU-08": refresh, "OAU-10": refresh,
		"OAU-13": refresh,
		"OAU-14": "not built yet: a warning, when a connector is installed, of operations that issue credentials; " +
			"docs/scrubbing.md says that what they issue arrives",
	}, cases: []attack{
		{id: "OAU-07", does: "an access token that no header can hold is refused when it is bound", run: func(c *testCase) {
			p := newPerson(c.t)
			p.install("oauth")
			p.newVault()
			for _, token := range []string{"", "token\r\nX-More: 1", "token\ntoken", "tok\x00en-of-some-length",
				"tok\x1ben-of-some-length", repeated("x", 1<<20), "short"} {
				if e := p.tell(token, "binding", "setup", "github://attacks/oauth", "--secret-stdin"); e.code == 0 ||
					strings.Contains(e.String(), "X-More") {
					c.failf("%.20q: %s", token, e)
				}
			}
			if list := p.must("binding", "list", "--json").out; strings.TrimSpace(list) != "[]" {
				c.failf("something was bound: %s", list)
			}
		}},
		{id: "OAU-11", does: "where tokens are issued is no place that the box may ask, by name or by address",
			run: func(c *testCase) {
				for _, target := range []string{"/token", "/oauth2/token", "/v1/items"} {
					for _, host := range []string{"idp.good.test", places["idp.good.test"].String()} {
						l, a := c.connect(host)
						c.rows++
						if a.status != 200 {
							c.failf("CONNECT %s: %s", host, a)
							continue
						}
						in, err := c.secure(l, named(host))
						c.must(err)
						a = c.say(in, head("POST", host, target, "Content-Length: 24")+"grant_type=refresh_token", "POST")[0]
						c.refused(host+target, a, hostNotAllowed)
					}
				}
				c.untouched()
				c.is("the token's own place", c.get("oauth.good.test", "/v1/items"), 200)
				c.refused("the token endpoint there",
					c.tun("oauth.good.test", head("POST", "oauth.good.test", "/oauth2/token", "Content-Length: 0")), operationNone)
				// Even where both names lead to one machine.
				on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) {
					return []netip.Addr{places["oauth.good.test"]}, name == "idp.good.test"
				})
				c.refused("by another name", c.tun("idp.good.test", head("POST", "idp.good.test", "/token", "Content-Length: 0")),
					hostNotAllowed)
			}},
	}}
}
