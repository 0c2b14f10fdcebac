package attacks

import (
	"fmt"
	"strings"
)

// red: answers that lead somewhere else.
func red() category {
	return category{name: "RED", cases: []attack{
		{id: "RED-05", does: "a call of an operation by name follows no redirect", run: calledRedirects},
		{id: "RED-01", does: "a redirect is the client's to follow, and its target is judged like any other",
			run: func(c *testCase) {
				for _, status := range []int{301, 302, 303, 307, 308} {
					c.each(fmt.Sprint(status), func(c *testCase) {
						c.origin("api.good.test").plays(func(v *visit) { v.reply(status, "", "Location", "https://evil.test/?x=1") })
						a := c.get("api.good.test", "/v1/items")
						c.is("the redirect", a, status)
						if a.header.Get("Location") != "https://evil.test/?x=1" {
							c.failf("Location is %q", a.header.Get("Location"))
						}
						c.refused("its target", c.get("evil.test", "/?x=1"), hostNotAllowed)
					})
				}
			}},
		{id: "RED-02", does: "a redirect that keeps the method takes no credential with it", run: func(c *testCase) {
			for _, status := range []int{307, 308} {
				c.each(fmt.Sprint(status), func(c *testCase) {
					c.origin("api.good.test").plays(func(v *visit) {
						v.reply(status, "", "Location",
							"https://key.good.test/v1/items")
					})
					c.is("the redirect", c.post("api.good.test", "/v1/items", "x"), status)
					if len(c.hits("key.good.test")) != 0 {
						c.failf("it was followed")
					}
					c.refused("the client follows, as no operation allows", c.post("key.good.test", "/v1/items", "x"), operationNone)
					c.is("the client follows, as one allows", c.get("key.good.test", "/v1/items"), 200)
				})
			}
		}},
		{id: "RED-04", does: "a redirect to clear text leads nowhere", run: func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) { v.reply(302, "", "Location", "http://api.good.test/v1/items") })
			c.is("the redirect", c.get("api.good.test", "/v1/items"), 302)
			c.refused("its target", c.absolute("http://api.good.test/v1/items", "api.good.test"), hostNotAllowed)
			c.refused("its target in a tunnel", c.tunClear("api.good.test:80", head("GET", "api.good.test:80", "/v1/items")),
				hostNotAllowed)
		}},
		{id: "RED-07", does: "links that carry the credential are wiped, and nothing is fetched ahead",
			run: func(c *testCase) {
				c.origin("api.good.test").plays(func(v *visit) {
					s := v.credential()
					v.reply(200, `<meta http-equiv="refresh" content="0;url=https://evil.test/?`+s+
						`"><link rel=preload href="https://evil.test/`+s+`">`, "Content-Type", "text/html",
						"Refresh", "0;url=https://evil.test/?"+s, "Link", "<https://evil.test/"+s+">; rel=preload")
				})
				a := c.get("api.good.test", "/v1/items")
				c.is("the page", a, 200)
				if strings.Count(a.body, stars(40)) != 2 || !strings.Contains(a.header.Get("Refresh"), stars(40)) {
					c.failf("got %s %v", a, a.header)
				}
			}},
	}}
}
