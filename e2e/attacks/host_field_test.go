package attacks

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/netip"
	"strings"
	"sync"
)

// hst: Host, SNI and :authority that are not the tunnel's.
func hst() category {
	return category{name: "HST", cases: join(written("hosts"), []attack{
		{id: "HST-04", does: "the SNI and Host of one host in the tunnel to another", run: func(c *testCase) {
			for _, pair := range [][2]string{{"plain.good.test", "api.good.test"}, {"api.good.test", "plain.good.test"},
				{"evil.test", "api.good.test"},
				{places["evil.test"].String(), "api.good.test"}} { // a name counts for an address only behind the gateway
				c.each(strings.Join(pair[:], " as "), func(c *testCase) {
					l, a := c.connect(pair[0])
					c.is("CONNECT", a, 200)
					c.rows++
					if _, err := c.secure(l, &tls.Config{ServerName: pair[1], InsecureSkipVerify: true}); err == nil {
						c.failf("the handshake was taken")
						return
					}
					c.rowSays("the handshake", otherAuthority)
					c.untouched()
				})
			}
		}},
		{id: "HST-05", does: "a client without SNI gets the tunnel's leaf, and its service", run: func(c *testCase) {
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			in, err := c.secure(l, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return // an alert is as good
			}
			leaf := in.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
			if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "api.good.test" || len(leaf.IPAddresses) != 0 {
				c.failf("the leaf is for %v %v", leaf.DNSNames, leaf.IPAddresses)
			}
			c.rows++
			c.is("the request", c.say(in, head("GET", "api.good.test", "/v1/items"), "GET")[0], 200)
		}},
		{id: "HST-13", does: "a resumed TLS session gives no more than a new one", run: hstResumption},
		{id: "HST-14", does: "one address and one certificate for two hosts are still two hosts", run: hstCoalescing},
	})}
}

// oneTicket is a client's cache that offers its one session to every host.
type oneTicket struct {
	mu      sync.Mutex
	session *tls.ClientSessionState
}

func (o *oneTicket) Get(string) (*tls.ClientSessionState, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.session, o.session != nil
}

func (o *oneTicket) Put(_ string, s *tls.ClientSessionState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s != nil {
		o.session = s
	}
}

func hstResumption(c *testCase) {
	ask := func(c *testCase, tickets *oneTicket, host string) (resumed bool) {
		l, a := c.connect(host)
		c.is("CONNECT", a, 200)
		in, err := c.secure(l, &tls.Config{ServerName: host, ClientSessionCache: tickets, InsecureSkipVerify: true})
		if err != nil {
			c.failf("TLS to %s: %v", host, err)
			return false
		}
		c.rows++
		_, _ = io.WriteString(in, head("GET", host, "/v1/items"))
		c.is("the request to "+host, readAnswer(bufio.NewReader(in), "GET"), 200) // whose credential it got is O2's
		return in.Conn.(*tls.Conn).ConnectionState().DidResume
	}
	for _, pair := range [][2]string{{"plain.good.test", "api.good.test"}, {"api.good.test", "plain.good.test"},
		{"api.good.test", "key.good.test"}} {
		c.each(strings.Join(pair[:], " then "), func(c *testCase) {
			tickets := &oneTicket{}
			ask(c, tickets, pair[0])
			ask(c, tickets, pair[1])
		})
	}
	c.each("another session", func(c *testCase) {
		tickets := &oneTicket{}
		ask(c, tickets, "api.good.test")
		if tickets.session == nil {
			c.failf("there is no ticket to try")
		}
		other := newWorld(c.t, fixture{})
		defer other.stop()
		c.as(other, func() {
			if ask(c, tickets, "plain.good.test") {
				c.failf("a ticket of one session was taken by another")
			}
		})
	})
}

// hstCoalescing: api and key share an address and a certificate.
func hstCoalescing(c *testCase) {
	c.each("client", func(c *testCase) {
		conn := c.h2("api.good.test")
		c.rows++
		conn.request(1, "GET", "key.good.test", "/v1/items")
		c.refused("the request to the other host", conn.answer(1), otherAuthority)
		c.untouched()
	})
	c.each("upstream", func(c *testCase) {
		cert, key, err := sign(wide("api.good.test", "key.good.test"), on.roots.cert, on.roots.key)
		c.must(err)
		own := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
		c.origin("api.good.test").cut()
		c.origin("key.good.test").cut()
		c.origin("api.good.test").presents(own)
		c.origin("key.good.test").presents(own)
		on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) {
			return []netip.Addr{places["api.good.test"]}, name == "key.good.test"
		})
		c.is("api", c.get("api.good.test", "/v1/items"), 200)
		c.is("key", c.get("key.good.test", "/v1/items"), 200)
		hits := c.hits("api.good.test")
		if len(hits) != 2 || hits[0].conn == hits[1].conn || hits[1].sni != "key.good.test" ||
			hits[1].Host != "key.good.test" {
			c.failf("the two came as %+v", hits)
		}
		if len(hits) == 2 && strings.Contains(string(hits[1].Raw), on.secrets["S1"]) {
			c.failf("key.good.test got the credential of api.good.test")
		}
		c.origin("api.good.test").forget() // O2 knows of one host for one address
		c.unfit = true
	})
}
