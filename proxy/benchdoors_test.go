package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkDoors sends the same exchange as a call by name and through the proxy, in turn, on two kept-alive
// connections, so that other load of the machine affects both alike. It reports the processor time of a call as a ratio
// to that of the proxy's exchange, client and origin included.
func BenchmarkDoors(b *testing.B) {
	viaProxy, byName, shim := openDoors(b)
	var spent [3]int64
	const turn = 100
	for b.Loop() {
		for i, d := range []door{viaProxy, byName, shim} {
			before := cpu(b)
			for range turn {
				must.Do(b, d.exchange())
			}
			spent[i] += cpu(b) - before
		}
	}
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "call/proxy")
	b.ReportMetric(float64(spent[2])/float64(spent[0]), "shim/proxy")
	b.ReportMetric(float64(spent[0])/float64(b.N*turn), "proxy-cpu-ns")
	b.ReportMetric(float64(spent[1])/float64(b.N*turn), "call-cpu-ns")
}

// BenchmarkDoor sends the exchange of BenchmarkDoors by one of them alone, so that what it costs can be counted.
func BenchmarkDoor(b *testing.B) {
	viaProxy, byName, shim := openDoors(b)
	for _, d := range []struct {
		name string
		door
	}{{"proxy", viaProxy}, {"call", byName}, {"shim", shim}} {
		b.Run(d.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, d.exchange())
			}
		})
	}
}

// openDoors returns the same exchange by the proxy, as a call by name, and as one in a shell's form.
func openDoors(b *testing.B) (viaProxy, byName, shim door) {
	w := newCalls(b, scripted(b, "http/1.1", realHeads.serve), nil)
	body := invocation("get", `{"id":"7"}`)
	tunnel := w.tunnel("api.good.example")
	b.Cleanup(func() { _ = tunnel.Close() })
	direct := must.Get(net.Dial("tcp", w.addr))(b)
	b.Cleanup(func() { _ = direct.Close() })
	viaProxy = door{tunnel, "GET /v1/things/7 HTTP/1.1\r\nHost: api.good.example\r\n" +
		strings.ReplaceAll(realHeads.request, "\n", "\r\n") + "\r\n\r\n", fixedBody}
	byName = door{direct, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: */*\r\n"+
		"Content-Type: application/json\r\nUser-Agent: bench\r\nContent-Length: %d\r\n\r\n%s", operationsPath, w.addr,
		testToken, len(body), body), "\"}\n"}
	shim = door{direct, strings.Replace(byName.request, "*/*", formShim, 1), fixedBody}
	w.signHead()
	return viaProxy, byName, shim
}

// door is a connection, a request on it, and how its response ends.
type door struct {
	conn         io.ReadWriter
	request, end string
}

func (d door) exchange() error {
	if _, err := io.WriteString(d.conn, d.request); err != nil {
		return err
	}
	var buf [16 << 10]byte
	for got := 0; ; {
		n, err := d.conn.Read(buf[got:])
		if got += n; err != nil || !bytes.HasPrefix(buf[:got], []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("%w: %v %q", errNoFixedResponse, err, buf[:got])
		}
		if bytes.HasSuffix(buf[:got], []byte(d.end)) {
			return nil
		}
	}
}
