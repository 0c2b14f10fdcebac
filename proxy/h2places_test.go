package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
)

// crowd is a client that keeps as many streams open as it may, and opens
// another as soon as RFC 9113 section 5.1.2 lets it.
type crowd struct {
	*h2raw
	t       *testing.T
	next    uint32
	open    map[uint32]bool // the open streams; true: the request has not ended
	closed  int
	refused int
}

// another opens a stream. One in three is an upload that is denied before it
// has ended, and one in forty is reset at once.
func (c *crowd) another() {
	id := c.next
	c.next += 2
	method, path, upload := "GET", "/v1/items", id/2%3 == 0
	if upload {
		method, path = "POST", "/denied"
	}
	c.buf.Reset()
	for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "api.good.example"},
		{":path", path}} {
		_ = c.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	must.Do(c.t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.buf.Bytes(), EndStream: !upload,
		EndHeaders: true}))
	c.open[id] = upload
	if id/2%40 == 1 {
		must.Do(c.t, c.WriteRSTStream(id, http2.ErrCodeCancel))
		c.end(id)
	}
}

// end opens a stream in the place of one that is closed.
func (c *crowd) end(id uint32) {
	delete(c.open, id)
	c.closed++
	c.another()
}

func (c *crowd) frame(f http2.Frame) {
	id := f.Header().StreamID
	upload, open := c.open[id]
	ended := false
	switch f := f.(type) {
	case *http2.RSTStreamFrame:
		if f.ErrCode == http2.ErrCodeRefusedStream {
			c.refused++
		}
		ended, upload = true, false
	case *http2.MetaHeadersFrame:
		ended = f.StreamEnded()
	case *http2.DataFrame:
		ended = f.StreamEnded()
		if n := f.Length; n > 0 {
			must.Do(c.t, c.WriteWindowUpdate(0, n))
		}
	case *http2.GoAwayFrame:
		c.t.Fatalf("the connection ends with %v", f.ErrCode)
	}
	if !open || !ended {
		return
	}
	if upload {
		must.Do(c.t, c.WriteData(id, true, nil))
	}
	c.end(id)
}

// A client that always has as many streams open as it may is
// never refused one.
func TestAClientAtTheStreamLimitIsNotRefused(t *testing.T) {
	for name, originH2 := range map[string]bool{"origin of HTTP/1.1": false, "origin of HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, originH2, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, fixedBody) })
			w.quiet = true
			c := &crowd{h2raw: w.h2raw("api.good.example"), t: t, next: 1, open: map[uint32]bool{}}
			must.Do(t, c.conn.SetDeadline(time.Now().Add(2*testPatience)))
			const most, requests = 100, 1000
			for len(c.open) < most {
				c.another()
			}
			for c.closed < requests {
				f := must.Get(c.ReadFrame())(t)
				c.frame(f)
				if len(c.open) != most {
					t.Fatalf("%d streams are open, want %d", len(c.open), most)
				}
			}
			if c.refused > 0 {
				t.Errorf("%d of %d streams were refused", c.refused, c.closed)
			}
		})
	}
}
