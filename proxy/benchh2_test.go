package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkExchangeH2 is one credentialed GET of 64 at a time on one connection of
// HTTP/2, to an origin that speaks HTTP/2. Client and origin write fixed blocks.
func BenchmarkExchangeH2(b *testing.B) { benchmarkH2(b, "h2") }

// BenchmarkExchangeH2ToH1 is BenchmarkExchangeH2 to an origin of HTTP/1.1.
func BenchmarkExchangeH2ToH1(b *testing.B) { benchmarkH2(b, "http/1.1") }

func benchmarkH2(b *testing.B, upstream string) {
	serve := plainHeads.serve
	if upstream == "h2" {
		serve = serveFixedH2
	}
	w := newWorldWith(b, false, scripted(b, upstream, serve), nil)
	conn := w.tunnelOf("api.good.example", "h2")
	defer conn.Close()
	c := newFixedH2(b, conn)
	must.Do(b, c.exchange(200))
	w.signHead()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	must.Do(b, c.exchange(b.N))
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// fixedH2 is a client that sends one field section again and again.
type fixedH2 struct {
	conn   *tls.Conn
	out    *bufio.Writer
	framer *http2.Framer
	block  []byte
	next   uint32
}

func newFixedH2(b *testing.B, conn *tls.Conn) *fixedH2 {
	b.Helper()
	c := &fixedH2{conn: conn, out: bufio.NewWriterSize(conn, 16<<10), next: 1}
	c.framer = http2.NewFramer(c.out, bufio.NewReader(conn))
	c.framer.SetReuseFrames()
	c.block = fixedBlock(":method", "GET", ":scheme", "https", ":authority", "api.good.example", ":path", "/v1/items",
		"user-agent", "bench", "accept", "*/*")
	must.Get(io.WriteString(c.out, http2.ClientPreface))(b)
	must.Do(b, c.framer.WriteSettings())
	must.Do(b, c.framer.WriteWindowUpdate(0, 1<<30))
	return c
}

// fixedBlock encodes a field section without the dynamic table.
func fixedBlock(pairs ...string) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSizeLimit(0)
	enc.SetMaxDynamicTableSize(0)
	for i := 0; i < len(pairs); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return block.Bytes()
}

// exchange makes n exchanges, 64 at a time.
func (c *fixedH2) exchange(n int) error {
	for sent, got := 0, 0; got < n; {
		for ; sent < n && sent-got < 64; sent++ {
			if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: c.block,
				EndStream: true, EndHeaders: true}); err != nil {
				return err
			}
			c.next += 2
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		f, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			if f.StreamEnded() {
				got++
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return fmt.Errorf("got %v", f)
		}
	}
	return nil
}

// serveFixedH2 answers every request over HTTP/2 with the fixed body.
func serveFixedH2(_ int, conn *tls.Conn) {
	in, out := bufio.NewReader(conn), bufio.NewWriterSize(conn, 16<<10)
	if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	framer := http2.NewFramer(out, in)
	framer.SetReuseFrames()
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	block := fixedBlock(":status", "200", "content-type", "application/json", "content-length",
		fmt.Sprint(len(fixedBody)))
	body := []byte(fixedBody)
	for {
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
		f, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = framer.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block, EndHeaders: true})
			_ = framer.WriteData(f.StreamID, true, body)
		}
	}
}
