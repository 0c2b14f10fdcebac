package h2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

func TestAQueueKeepsWhatItGets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want, got bytes.Buffer
	held := int64(0)
	for i := range 5000 {
		data := make([]byte, r.IntN(300))
		for j := range data {
			data[j] = byte(i + j)
		}
		held += q.cost(len(data))
		q.put(data)
		want.Write(data)
		if i%2 == 0 {
			p := make([]byte, r.IntN(700))
			n, freed := q.take(p)
			got.Write(p[:n])
			held -= freed
		}
		if int64(q.held) != held || q.held > q.size+2*pieceSize {
			t.Fatalf("%d bytes are held for %d, and %d were counted", q.held, q.size, held)
		}
	}
	rest := make([]byte, q.size)
	_, freed := q.take(rest)
	got.Write(rest)
	if !bytes.Equal(got.Bytes(), want.Bytes()) || q.held != 0 || held != freed {
		t.Errorf("the queue changed what it got, or holds %d (%d) bytes of nothing", q.held, held-freed)
	}
}

// Each of a thousand bodies may wait for its turn with a piece, which nothing counts.
func TestPiecesAreSmallWhileTheBudgetIsTight(t *testing.T) {
	b := budget.New(1 << 20)
	st := &stream{c: &connection{account: b.Conn(), sendWindow: 1 << 20}, sendWindow: 1 << 20}
	for _, taken := range []int64{0, b.Size()/4 + 1} {
		hold := b.Conn().Hold(nil)
		hold.Take(taken)
		want := 16 << 10
		if taken > 0 {
			want = 4 << 10
		}
		if buf, _ := st.buffer(true); len(*buf) != want {
			t.Errorf("with %d bytes of %d taken a piece has %d bytes, want %d", taken, b.Size(), len(*buf), want)
		}
		hold.Release()
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

// A hundred responses that are not read do not read their origin ahead, and the
// oldest end, with their reason, when there is no room for all of them.
func TestAnswersThatNobodyReadsMakeRoom(t *testing.T) {
	unhurried(t)
	causes := make(chan error, 200)
	b := budget.New(2 << 20)
	c := newFrames(t, wire.Options{Budget: b}, handler(func(r *http.Request) *http.Response {
		context.AfterFunc(r.Context(), func() { causes <- context.Cause(r.Context()) })
		res := status(200, r, endless{}, -1)
		res.ProtoMajor = 2
		return res
	}))
	_ = c.WriteSettings()
	var reset []uint32
	for i := range uint32(20) { // five eighths of 2 MiB have room for eleven
		c.open(2*i+1, true, asks("GET", "/x")...)
	}
	c.await(t, func(f http2.Frame) bool {
		if rst, ok := f.(*http2.RSTStreamFrame); ok {
			if rst.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("stream %d was reset with %v", rst.StreamID, rst.ErrCode)
			}
			reset = append(reset, rst.StreamID)
		}
		return len(reset) >= 8
	})
	for range reset {
		if err := <-causes; !errors.Is(err, budget.ErrShed) {
			t.Errorf("a stream ended with %v, want %v", err, budget.ErrShed)
		}
	}
	if used := b.Used(); used > 2<<20*5/8 {
		t.Errorf("one connection holds %d bytes", used)
	}
}

// A stream's place is free when its client learns that it has ended.
func TestAPlaceIsFreeAsSoonAsTheAnswerEnded(t *testing.T) {
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		return status(200, r, io.NopCloser(bytes.NewReader([]byte("hello"))), 5)
	}))
	_ = c.WriteSettings()
	id := uint32(1)
	for ; id < 2*maxStreams; id += 2 {
		c.open(id, true, asks("GET", "/x")...)
	}
	for ended := 0; ended < 2000; {
		c.await(t, func(f http2.Frame) bool {
			switch f := f.(type) {
			case *http2.RSTStreamFrame:
				t.Fatalf("stream %d was reset with %v", f.StreamID, f.ErrCode)
			case *http2.DataFrame:
				return f.StreamEnded()
			}
			return false
		})
		ended++
		if id < 4000 {
			c.open(id, true, asks("GET", "/x")...)
			id += 2
		}
	}
}

// A client that is refused more often than answers may wait loses its
// connection, and learns why.
func TestRefusalsThatAreTooManyEndTheConnection(t *testing.T) {
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		res := status(403, r, io.NopCloser(bytes.NewReader(nil)), 0)
		res.Close = true
		return res
	}))
	_ = c.WriteSettings()
	c.open(1, true, asks("GET", "/x")...)
	for answered := false; ; {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ends with %v", err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			answered = f.PseudoValue("status") == "403"
		case *http2.GoAwayFrame:
			if !answered || f.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("the connection ends with %v, and the refusal was answered: %t", f.ErrCode, answered)
			}
			return
		}
	}
}

// The frame that opens a stream holds nothing any more when room is made for the
// stream: the connection would be shed for it, by its own reader.
func TestARequestDoesNotShedItsOwnConnection(t *testing.T) {
	unhurried(t)
	b := budget.New(64 << 10) // five eighths hold a frame or an exchange, and not both
	c := newFrames(t, wire.Options{Budget: b}, handler(func(r *http.Request) *http.Response {
		return status(200, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	c.await(t, func(f http2.Frame) bool { // so that the next frame comes alone
		settings, ok := f.(*http2.SettingsFrame)
		return ok && settings.IsAck()
	})
	c.open(1, true, asks("GET", "/x")...)
	c.await(t, func(f http2.Frame) bool {
		h, ok := f.(*http2.MetaHeadersFrame)
		if ok && h.PseudoValue("status") != "200" {
			t.Errorf("the request gets %s", h.PseudoValue("status"))
		}
		return ok
	})
}

// What a client that reads nothing makes the reader write counts in the
// session's budget, and makes room for others.
func TestAnswersToAFloodCountAndMakeRoom(t *testing.T) {
	for name, write := range map[string]func(c *http2.Framer) error{
		"PING":     func(c *http2.Framer) error { return c.WritePing(false, [8]byte{1}) },
		"SETTINGS": func(c *http2.Framer) error { return c.WriteSettings() },
		"a reset":  func(c *http2.Framer) error { return c.WritePriority(1, http2.PriorityParam{StreamDep: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(1 << 20)
			client, server := net.Pipe() // which holds nothing: what is not read is not written
			defer client.Close()
			must.Do(t, client.SetDeadline(time.Now().Add(patience)))
			served := make(chan struct{})
			go func() {
				defer close(served)
				opts := wire.Options{Budget: b, Limits: wire.Limits{Stalled: patience}}
				Serve(t.Context(), server, opts,
					handler(func(r *http.Request) *http.Response { return status(200, r, http.NoBody, 0) }))
			}()
			_, err := io.WriteString(client, http2.ClientPreface)
			must.Do(t, err)
			fr := http2.NewFramer(client, client)
			for range 2 { // SETTINGS and WINDOW_UPDATE
				_, err = fr.ReadFrame()
				must.Do(t, err)
			}
			go func() {
				_ = fr.WriteSettings()
				_, _ = fr.ReadFrame() // its acknowledgement
				_ = write(fr)
			}()
			for b.Used() < blocked {
				select {
				case <-served:
					t.Fatal("the connection ends")
				case <-time.After(time.Millisecond):
				}
			}
			for _, n := range []int64{b.Size() / 2, b.Size()/2 - blocked + 1} {
				hold := b.Conn().Hold(nil)
				defer hold.Release()
				if !hold.TryTake(n) {
					t.Errorf("there is no room for %d bytes beside a client that reads nothing", n)
				}
			}
			<-served // it had to make room
		})
	}
}
