package attacks

// upg: requests that want to leave HTTP.
func upg() category {
	return category{name: "UPG", cases: []attack{
		{id: "UPG-04", does: "an upgrade to something unknown is refused before anything is sent", run: func(c *trial) {
			c.origin("api.good.test").plays(func(v *visit) {
				v.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nRAW %s", v.credential())
				v.close = true
			})
			a := c.get("api.good.test", "/v1/echo", "Connection: Upgrade", "Upgrade: foo")
			c.is("the upgrade", a, 426)
			c.because("the upgrade", a, "upgrade_not_declared")
			c.untouched()
		}},
	}}
}
