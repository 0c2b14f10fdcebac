package attacks

// aud: what the audit log must and must not hold.
func aud() category {
	return category{name: "AUD", cases: []attack{
		{id: "AUD-01", does: "one outcome row for each request, whatever became of it", run: func(c *trial) {
			const h = "Host: api.good.test\r\n"
			for name, r := range map[string]struct {
				raw    string
				status int
			}{
				"allowed":                {"GET /v1/items HTTP/1.1\r\n" + h + "\r\n", 200},
				"denied":                 {"GET /nothing HTTP/1.1\r\n" + h + "\r\n", 403},
				"options of the server":  {"OPTIONS * HTTP/1.1\r\n" + h + "\r\n", 400},
				"strange expectation":    {"POST /v1/items HTTP/1.1\r\n" + h + "Expect: the-unexpected\r\nContent-Length: 1\r\n\r\nx", 417},
				"two hosts":              {"GET /v1/items HTTP/1.1\r\n" + h + h + "\r\n", 400},
				"unknown coding":         {"POST /v1/items HTTP/1.1\r\n" + h + "Transfer-Encoding: cow\r\n\r\n", 501},
				"unknown version":        {"GET /v1/items HTTP/3.0\r\n" + h + "\r\n", 505},
				"too many fields":        {"GET /v1/items HTTP/1.1\r\n" + h + repeated("A: b\r\n", 5000) + "\r\n", 431},
				"a body that is too big": {"POST /v1/items HTTP/1.1\r\n" + h + "Content-Length: 99999999999999\r\n\r\n", 413},
			} {
				c.each(name, func(c *trial) { c.is(name, c.tun("api.good.test", r.raw), r.status) })
			}
			c.each("no token", func(c *trial) {
				c.is("no token", c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n\r\n"), 407)
			})
			c.each("a handshake that fails", func(c *trial) {
				l, _ := c.connect("api.good.test")
				c.rows++
				c.say(l, "\x16\x03\x01\x00\x05hello")
			})
		}},
	}}
}
