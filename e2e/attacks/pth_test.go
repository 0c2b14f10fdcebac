package attacks

// pth: paths and methods that are judged as one thing and served as another.
func pth() category {
	return category{name: "PTH", cases: []attack{
		{id: "PTH-22", does: "OPTIONS * is refused, and written down", run: func(c *trial) {
			c.each("inside", func(c *trial) {
				c.is("OPTIONS *", c.tun("api.good.test", head("OPTIONS", "api.good.test", "*")), 400, 403)
			})
			c.each("outside", func(c *trial) {
				c.is("OPTIONS *", c.fwd("OPTIONS * HTTP/1.1\r\nHost: api.good.test\r\n"+c.authorization()+"\r\n"), 400, 401, 403) // the API's door, which asks for its own token
			})
		}},
	}}
}
