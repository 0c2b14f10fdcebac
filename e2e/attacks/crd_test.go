package attacks

// crd: the credential's slot, and the box's own credentials.
func crd() category {
	return category{name: "CRD", cases: []attack{
		{id: "CRD-06", does: "the Connection field cannot take the injected credential off", run: func(c *trial) {
			c.is("the request", c.get("api.good.test", "/v1/items", "Connection: authorization, x-api-key, host"), 200)
		}},
		{id: "CRD-22", does: "no field makes the plane send a POST twice when a pooled connection dies", run: func(c *trial) {
			for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "idempotency-key"} {
				c.each(name, func(c *trial) {
					c.is("what fills the pool", c.get("api.good.test", "/v1/items"), 200)
					c.origin("api.good.test").plays(func(v *visit) {
						v.body()
						v.close = true // it was processed, and the answer is lost
					})
					a := c.post("api.good.test", "/v1/items", "", name+": k")
					c.is("the POST", a, 502)
					posts := 0
					for _, h := range c.hits("api.good.test") {
						if h.Method == "POST" {
							posts++
						}
					}
					if posts != 1 {
						c.failf("the origin got %d POSTs", posts)
					}
				})
			}
		}},
	}}
}
