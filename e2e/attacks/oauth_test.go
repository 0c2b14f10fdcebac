package attacks

import (
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
	}, cases: join(written("oauth"), []attack{
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
	})}
}
