package h2

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// A connection is closed behind its GOAWAY. What another writer has left in the buffer
// while it lets others run, such as the end of a complete response, is sent before.
func TestGoAwayWaitsForNoWriter(t *testing.T) {
	conn := &script{in: bytes.NewReader(nil)}
	c := &connection{conn: conn, ctx: context.Background(), streams: map[uint32]*stream{}}
	c.grown = sync.NewCond(&c.mu)
	c.waiting.Add(1) // as in writtenLast
	must.Do(t, c.write(func() { c.frameHead(0, http2.FrameData, http2.FlagDataEndStream, 1) }))
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

// A body of another length than announced wakes its reader when its stream is reset and its request canceled: a
// handler that is woken before would send a response on the stream (RFC 9113 section 8.1.1).
func TestABodyOfAnotherLengthIsReadNoMoreUntilItsStreamIsReset(t *testing.T) {
	for name, data := range map[string]string{"longer": "0123456789", "shorter": "01", "none": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &connection{ctx: t.Context(), limits: wire.Limits{}.WithDefaults()}
				st := c.newStream(1, 5, false)
				ended := make(chan error, 1)
				go func() {
					n, err := (&requestBody{st: st}).Read(make([]byte, 8))
					if n > 0 || err == nil || st.ctx.Err() == nil {
						t.Errorf("the body has %d bytes and ends with %v, its request with %v", n, err, st.ctx.Err())
					}
					ended <- err
				}()
				synctest.Wait()
				if code, kept := st.take([]byte(data), int64(len(data)), true); code != http2.ErrCodeProtocol || kept {
					t.Fatalf("take returns %v, %v", code, kept)
				}
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("the reader is woken with %v before the stream is reset", err)
				default:
				}
				st.end(errReset)
				<-ended
			})
		})
	}
}
