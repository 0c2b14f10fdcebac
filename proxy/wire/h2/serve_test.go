package h2

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// echo responds with the request's body.
type echo struct{}

func (e *echo) Answer(r *http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Path": {r.RequestURI}}, Body: r.Body, ContentLength: -1,
		Request: r}
}

func (e *echo) Refuse(f *wire.ProtocolError) *http.Response {
	return &http.Response{StatusCode: f.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.Reason)),
		ContentLength: int64(len(f.Reason))}
}

// script is a connection that delivers its input, and then io.EOF.
type script struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// Whatever frames arrive, Serve returns, and its output consists of frames.
func FuzzServe(f *testing.F) {
	var b bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "a.example"}, {":path", "/x"},
		{"content-length", "5"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = fr.WriteData(1, true, []byte("hello"))
	_ = fr.WriteWindowUpdate(1, 100)
	_ = fr.WritePing(false, [8]byte{1})
	_ = fr.WriteRSTStream(1, http2.ErrCodeCancel)
	_ = fr.WriteGoAway(1, http2.ErrCodeNo, nil)
	f.Add(b.Bytes())
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, frames []byte) {
		conn := &script{in: bytes.NewReader(append([]byte(http2.ClientPreface), frames...))}
		Serve(context.Background(), conn, wire.Options{Limits: wire.Limits{Stalled: time.Millisecond}}, &echo{})
		read := http2.NewFramer(nil, &conn.out)
		for {
			if _, err := read.ReadFrame(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("wrote what is no frame: %v", err)
			}
		}
	})
}

func TestABodyStopsAtItsWindow(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	served := make(chan struct{})
	released := make(chan struct{})
	go func() {
		defer close(served)
		Serve(t.Context(), server, wire.Options{}, handler(func(r *http.Request) *http.Response {
			<-released
			n, _ := io.Copy(io.Discard, r.Body)
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")),
				ContentLength: 0, Request: r,
				Trailer: http.Header{"X-Read": {strings.Repeat("x", int(n>>10))}}}
		}))
	}()
	_ = client.SetDeadline(time.Now().Add(patience))
	fr := http2.NewFramer(client, client)
	got := make(chan string, 16)
	go func() {
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				close(got)
				return
			}
			if r, ok := f.(*http2.RSTStreamFrame); ok {
				got <- r.ErrCode.String()
			}
		}
	}()
	_, _ = io.WriteString(client, http2.ClientPreface)
	_ = fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "a.example"},
		{":path", "/x"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	for range streamWindow/(16<<10) + 1 { // one frame more than was allowed, while nothing reads
		_ = fr.WriteData(1, false, make([]byte, 16<<10))
	}
	if code := <-got; code != "FLOW_CONTROL_ERROR" {
		t.Errorf("the stream was reset with %q", code)
	}
	close(released)
	client.Close()
	<-served
}

type handler func(*http.Request) *http.Response

func (h handler) Answer(r *http.Request) *http.Response     { return h(r) }
func (h handler) Refuse(*wire.ProtocolError) *http.Response { return nil }
