package h2

import (
	"bytes"
	"io"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// A client that only sends frames to be answered costs the session processor time.
// One whose requests make progress may send any number of them.
func TestAFloodOfFramesThatAreAnsweredEndsTheConnection(t *testing.T) {
	type client struct {
		*http2.Framer
		block bytes.Buffer
	}
	ping := func(c *client, _ int) { _ = c.WritePing(false, [8]byte{1}) }
	request := func(c *client, i int) {
		if i%1000 != 0 {
			return
		}
		c.block.Reset()
		enc := hpack.NewEncoder(&c.block)
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a.example"},
			{":path", "/x"}} {
			_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(i/1000*2 + 1), BlockFragment: c.block.Bytes(),
			EndStream: true, EndHeaders: true})
	}
	for name, c := range map[string]struct {
		send func(c *client, i int)
		calm bool
	}{
		"PING":                  {ping, true},
		"SETTINGS":              {func(c *client, _ int) { _ = c.WriteSettings() }, true},
		"PING between requests": {func(c *client, i int) { request(c, i); ping(c, i) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := bytes.NewBufferString(http2.ClientPreface)
			from := &client{Framer: http2.NewFramer(in, nil)}
			_ = from.WriteSettings()
			for i := range maxAnswers + maxAnswers/2 {
				c.send(from, i)
			}
			conn := &script{in: bytes.NewReader(in.Bytes())}
			Serve(t.Context(), conn, wire.Options{}, &echo{})
			calm, answers := false, 0
			for read := http2.NewFramer(nil, &conn.out); ; {
				frame, err := read.ReadFrame()
				if err == io.EOF {
					break
				}
				must.Do(t, err)
				switch f := frame.(type) {
				case *http2.GoAwayFrame:
					calm = calm || f.ErrCode == http2.ErrCodeEnhanceYourCalm
				case *http2.PingFrame:
					answers++
				case *http2.SettingsFrame:
					if f.IsAck() {
						answers++
					}
				}
			}
			if calm != c.calm || calm && answers != maxAnswers || !calm && answers <= maxAnswers {
				t.Errorf("%d answers, ended with ENHANCE_YOUR_CALM: %t, want %t", answers, calm, c.calm)
			}
		})
	}
}
