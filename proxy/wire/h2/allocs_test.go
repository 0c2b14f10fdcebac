package h2

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// writeCounter counts the writes to a connection. It has no deadlines: those of a
// pipe allocate.
type writeCounter struct {
	net.Conn
	writes atomic.Int64
}

func (c *writeCounter) Write(p []byte) (int, error)    { c.writes.Add(1); return c.Conn.Write(p) }
func (*writeCounter) SetReadDeadline(time.Time) error  { return nil }
func (*writeCounter) SetWriteDeadline(time.Time) error { return nil }

// smallExchange returns a function that makes one exchange on a connection of
// HTTP/2, whose response is constant, and the server's end of it.
func smallExchange(t testing.TB) (func(), *writeCounter) {
	t.Helper()
	client, server := net.Pipe()
	counted := &writeCounter{Conn: server}
	body := []byte(`{"id": 1}`)
	header := http.Header{"Content-Type": {"application/json"}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		Serve(t.Context(), counted, wire.Options{}, handler(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: 200, Header: header, ContentLength: 9, Body: io.NopCloser(bytes.NewReader(body))}
		}))
	}()
	t.Cleanup(func() { client.Close(); <-served })

	var out, block bytes.Buffer
	fr, enc := http2.NewFramer(&out, nil), hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSizeLimit(0)
	enc.SetMaxDynamicTableSize(0)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "api.example"},
		{":path", "/v1/items"}, {"user-agent", "test"}, {"accept", "*/*"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	out.WriteString(http2.ClientPreface)
	_ = fr.WriteSettings()
	_ = fr.WriteWindowUpdate(0, 1<<30)
	preface := bytes.Clone(out.Bytes())
	out.Reset()
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true,
		EndHeaders: true})
	request, id := out.Bytes(), uint32(1)

	// What the server writes, its settings first, is read in pieces.
	buf, got := make([]byte, 4<<10), 0
	awaitEnd := func() {
		for {
			for got >= 9 {
				size := 9 + int(buf[0])<<16 + int(buf[1])<<8 + int(buf[2])
				if got < size {
					break
				}
				ended := http2.FrameType(buf[3]) == http2.FrameData && buf[4]&byte(http2.FlagDataEndStream) != 0
				got = copy(buf, buf[size:got])
				if ended {
					return
				}
			}
			n, err := client.Read(buf[got:])
			if got += n; err != nil {
				t.Fatal(err)
			}
		}
	}
	writes := make(chan []byte)
	go func() {
		for p := range writes {
			_, _ = client.Write(p)
		}
	}()
	t.Cleanup(func() { close(writes) })
	writes <- preface
	return func() {
		binary.BigEndian.PutUint32(request[5:], id)
		id += 2
		writes <- request
		awaitEnd()
	}, counted
}

func TestASmallResponseIsOneWrite(t *testing.T) {
	exchange, conn := smallExchange(t)
	exchange()
	before := conn.writes.Load()
	for range 100 {
		exchange()
	}
	if n := conn.writes.Load() - before; n > 105 { // a busy machine may take longer than headWait
		t.Errorf("100 responses were %d writes", n)
	}
}

func TestAnExchangeTakesFewAllocations(t *testing.T) {
	exchange, _ := smallExchange(t)
	exchange()
	const most = 31 // of which 4 are the handler's
	if n := testing.AllocsPerRun(200, exchange); n > most && !underRace {
		t.Errorf("an exchange takes %v allocations, want %d", n, most)
	}
}

func BenchmarkExchange(b *testing.B) {
	exchange, _ := smallExchange(b)
	b.ReportAllocs()
	for b.Loop() {
		exchange()
	}
}
