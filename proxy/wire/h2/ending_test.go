package h2

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// A connection is closed behind its GOAWAY. What another writer has left in the buffer
// while it lets others run, such as the end of a complete response, is sent before.
func TestGoAwayWaitsForNoWriter(t *testing.T) {
	conn := &script{in: bytes.NewReader(nil)}
	c := &connection{conn: conn, ctx: context.Background(), streams: map[uint32]*stream{}}
	c.grown = sync.NewCond(&c.mu)
	c.waiting.Add(1) // as in writtenLast
	if err := c.write(func() { c.frameHead(0, http2.FrameData, http2.FlagDataEndStream, 1) }); err != nil {
		t.Fatal(err)
	}
	c.goAway(http2.ErrCodeEnhanceYourCalm)
	var got []http2.FrameType
	for read := http2.NewFramer(io.Discard, &conn.out); ; {
		f, err := read.ReadFrame()
		if err != nil {
			break
		}
		got = append(got, f.Header().Type)
	}
	if len(got) != 2 || got[0] != http2.FrameData || got[1] != http2.FrameGoAway {
		t.Errorf("%v was sent, want DATA and GOAWAY", got)
	}
}
