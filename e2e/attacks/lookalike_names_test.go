package attacks

import (
	"fmt"
	"strings"
)

// nam: names that are nearly those of allowed hosts.
func nam() category {
	return category{name: "NAM", cases: []attack{
		{id: "NAM-01", does: "names that begin or end like an allowed one", run: func(c *testCase) {
			for _, host := range []string{"evilapi.good.test", "xapi.good.test", "api.good.test.evil.test", "api.good.testx",
				"good.test", "x.api.good.test", "test", "api.good"} {
				c.each(host, func(c *testCase) {
					c.refused("the request", c.get(host, "/v1/items"), hostNotAllowed)
					c.untouched()
				})
			}
		}},
		{id: "NAM-02", does: "names that look or are mapped like an allowed one", run: func(c *testCase) {
			c.each("in its ASCII form", func(c *testCase) {
				c.refused("the request", c.get("xn--pi-7kc.good.test", "/v1/items"), hostNotAllowed)
				c.untouched()
			})
			for _, host := range []string{"аpi.good.test", "ａpi.good.test", "api。good.test", "api．good.test",
				"ßpi.good.test", "a\u200dpi.good.test", "api.good.test\u00ad"} {
				c.each(fmt.Sprintf("%+q", host), func(c *testCase) { c.leadsNowhere(host + ":443") })
			}
		}},
		{id: "NAM-04", does: "names that are none", run: func(c *testCase) {
			for _, host := range []string{"*.good.test", "*", "", ".good.test", "api..good.test", "-api.good.test",
				"api-.good.test", "api_.good.test",
				strings.Repeat("a", 64) + ".good.test", strings.Repeat("a.", 122) + "good.test.x", "api.good.test\t", "1.2.3",
				"0x7f.1", "api.good.123"} {
				c.each(fmt.Sprintf("%.20q", host), func(c *testCase) { c.leadsNowhere(host + ":443") })
			}
		}},
		{id: "NAM-05", does: "without any connector nothing is allowed", f: &fixture{connectors: []string{}},
			run: func(c *testCase) {
				c.unfit = true
				c.refused("the request", c.get("api.good.test", "/v1/items"), hostNotAllowed)
				c.refused("in clear", c.absolute("http://plain.good.test/v1/items", "plain.good.test"), hostNotAllowed)
				c.untouched()
			}},
		{id: "NAM-07", does: "a connector that the session does not have allows nothing",
			f: &fixture{connectors: []string{"key"}}, run: func(c *testCase) {
				c.unfit = true
				c.refused("the request", c.get("api.good.test", "/v1/items"), hostNotAllowed)
				c.untouched()
				c.is("its own", c.get("key.good.test", "/v1/items"), 200)
			}},
	}}
}

// leadsNowhere asks for a tunnel that must not open.
func (c *testCase) leadsNowhere(target string) {
	c.rows++
	_, a := c.connectRaw("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + c.authorization() + "\r\n")
	c.refused("CONNECT", a, malformed)
	c.untouched()
}
