package proxy

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A filter by connector shows every refusal on a host that the connector names.
func TestADenialNamesTheConnectorOfItsHost(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Connections = 8 }, hello)
	const fqn = "github://acme/tracker"
	inside := func(head string) func() {
		return func() { w.raw("api.good.example", head+"Connection: close\r\n\r\n") }
	}
	outside := func(head string) func() {
		return func() { w.say(head + "Proxy-Authorization: Bearer " + testToken + "\r\n\r\n") }
	}
	const host = "Host: api.good.example\r\n"
	for name, c := range map[string]struct {
		do     func()
		reason Reason
	}{
		"method":        {inside("PUT /v1/items HTTP/1.1\r\n" + host), "operation_not_matched"},
		"query":         {inside("GET /v1/items?z=1 HTTP/1.1\r\n" + host), "query_not_declared"},
		"path in doubt": {inside("GET /v1//items HTTP/1.1\r\n" + host), ReasonMalformed},
		"framing": {inside("POST /v1/items HTTP/1.1\r\n" + host +
			"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), ReasonMalformed},
		"a head too large": {inside("GET /v1/items HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 70<<10) + "\r\n"),
			ReasonHeadTooLarge},
		"another Host": {inside("GET /v1/items HTTP/1.1\r\nHost: evil.test\r\n"), ReasonAuthority},
		"a WebSocket": {inside("GET /v1/echo HTTP/1.1\r\n" + host +
			"Connection: Upgrade\r\nUpgrade: websocket\r\n"), ReasonUpgrade},
		"no such WebSocket": {inside("GET /none HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
			ReasonUpgrade},
		"a CONNECT inside": {inside("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n"), ReasonMalformed},
		"SNI":              {func() { w.shake("api.good.example", "evil.test", "x") }, ReasonAuthority},
		"no trust":         {func() { w.shake("api.good.example", "api.good.example", "") }, ReasonTLSClient},
		"no TLS":           {func() { w.shake("api.good.example", "-", "") }, ReasonNotTLS},
		"SSH":              {func() { w.speakSSH("api.good.example", "") }, ReasonNotTLS},
		"clear text":       {outside("GET http://api.good.example/v1/items HTTP/1.1\r\n" + host), spec403},
		"https in clear":   {outside("GET https://api.good.example/v1/items HTTP/1.1\r\n" + host), ReasonScheme},
		"framing in clear": {outside("POST http://api.good.example/ HTTP/1.1\r\nContent-Length: x\r\n" + host),
			ReasonMalformed},
		"CONNECT with a body": {outside("CONNECT api.good.example:443 HTTP/1.1\r\nContent-Length: 1\r\n" + host),
			ReasonMalformed},
		"no token":     {func() { w.say("CONNECT api.good.example:443 HTTP/1.1\r\n" + host + "\r\n") }, ReasonToken},
		"another port": {func() { w.do("GET", "https://api.good.example:8443/", "") }, "host_not_allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.rows())
			c.do()
			row := w.untilRows(func(rows []audit.Row) bool { return len(rows) > before })[before]
			if Reason(row.Reason) != c.reason || row.ConnectorFQN != fqn || row.ConnectorVersion != "1.2.0" ||
				row.Decision != audit.DecisionRejected {
				t.Errorf("row %+v, want reason %s of %s", row, c.reason, fqn)
			}
		})
	}
	before := len(w.rows())
	w.do("GET", "https://unnamed.example/", "")
	if row := w.rows()[before]; row.ConnectorFQN != "" || row.Reason != "host_not_allowed" {
		t.Errorf("a host that no connector names: %+v", row)
	}
}

const spec403 = "host_not_allowed"

// shake opens a tunnel to host and begins TLS for name, without trust in the
// session's CA if roots is empty; the name "-" stands for no TLS.
func (w *world) shake(host, name, roots string) {
	w.t.Helper()
	conn := w.connect(host)
	defer conn.Close()
	if name == "-" {
		fmt.Fprint(conn, "\x00\x01\x02")
		return
	}
	cfg := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, InsecureSkipVerify: roots != ""}
	if tls.Client(conn, cfg).Handshake() == nil {
		w.t.Errorf("TLS for %s in a tunnel to %s goes through", name, host)
	}
}

// speakSSH begins SSH in a tunnel, as OpenSSH does, and reads what its user gets to see.
func (w *world) speakSSH(host, advice string) {
	w.t.Helper()
	conn := w.connect(host)
	defer conn.Close()
	fmt.Fprint(conn, "SSH-2.0-OpenSSH_9.2p1\r\n")
	in := bufio.NewReader(conn)
	version := must.Get(in.ReadString('\n'))(w.t)
	var length uint32
	must.Do(w.t, binary.Read(in, binary.BigEndian, &length))
	packet := make([]byte, length)
	must.Get(io.ReadFull(in, packet))(w.t)
	if version != "SSH-2.0-aileron\r\n" || length%8 != 4 || packet[1] != 1 ||
		!strings.Contains(string(packet), "SSH does not leave this session, HTTPS does"+advice+"\x00") {
		w.t.Errorf("the client of %s gets %q and %q, want the advice %q", host, version, packet, advice)
	}
}

// plain.good.example has an operation for all paths, and with that git's repositories.
func TestAnSSHClientIsAdvisedOnlyWhatTheSessionAllows(t *testing.T) {
	w := newWorld(t, hello)
	const advice = ": for git, use git remote set-url origin https://plain.good.example/OWNER/REPOSITORY"
	for host, want := range map[string]string{
		"plain.good.example": advice, "ssh.plain.good.example": advice, "altssh.plain.good.example": advice,
		"q.good.example": "", "unnamed.example": "", "ssh.unnamed.example": "", "192.0.2.1": "",
	} {
		w.speakSSH(host, want)
	}
}

func TestTheHintNamesTheConnectorToBind(t *testing.T) {
	w := newWorld(t, hello)
	g := *w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub})
	_, body := w.do("GET", "https://api.good.example/v1/items", "")
	if _, why := reason(t, body); why != ReasonUnbound || !strings.Contains(body,
		`aileron binding setup github://acme/tracker"`) {
		t.Errorf("got %s", body)
	}
	bound := Bound{Binding: "bearer/tracker/test"}
	x := &Exchange{row: audit.Row{Binding: bound.Binding}}
	d := ReasonCredential.Deny("the credential does not fit")
	d.Subject = x.subject(d.Reason)
	if text := d.Text(); !strings.HasSuffix(text, "aileron binding rebind bearer/tracker/test") {
		t.Errorf("got %s", text)
	}
	for _, name := range []Reason{ReasonUnbound, ReasonCredential} {
		if text := name.Deny("x").Text(); strings.Contains(text, "%") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
