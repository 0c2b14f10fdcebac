package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// inPieces is a source that returns one piece a read.
type inPieces struct {
	pieces [][]byte
	reads  int
}

func (s *inPieces) Read(p []byte) (int, error) {
	s.reads++
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

// Chunks are decoded as net/http decodes them, right ones and wrong ones, in whatever
// pieces they come; and a read that was said to be ready waits for nothing.
func TestChunksAreReadAsNetHTTPReadsThem(t *testing.T) {
	accepted := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		text := someChunks(r)
		std := bufio.NewReaderSize(bytes.NewReader(text), connBuffer)
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(std))
		wantRest, _ := io.ReadAll(std)
		src := &inPieces{pieces: cut(r, text)}
		br := bufio.NewReaderSize(src, connBuffer)
		c := &chunkedReader{r: br}
		var got []byte
		var err error
		for p := make([]byte, 1+r.IntN(5000)); err == nil; {
			ready, reads := c.ready(), src.reads
			var n int
			n, err = c.Read(p)
			if got = append(got, p[:n]...); n == 0 && err == nil {
				t.Fatalf("seed %d: a read of %q brought nothing", seed, text)
			}
			if ready && src.reads != reads {
				t.Fatalf("seed %d: a read of %q waited, although it was ready", seed, text)
			}
		}
		if (err == io.EOF) != (wantErr == nil) ||
			errors.Is(err, io.ErrUnexpectedEOF) != errors.Is(wantErr, io.ErrUnexpectedEOF) ||
			!bytes.HasPrefix(got, want) && !bytes.HasPrefix(want, got) || err == io.EOF && !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %q is %q, %v, want %q, %v", seed, text, got, err, want, wantErr)
		}
		if err == io.EOF {
			accepted++
			if rest, _ := io.ReadAll(br); !bytes.Equal(rest, wantRest) {
				t.Fatalf("seed %d: %q is followed by %q, want %q", seed, text, rest, wantRest)
			}
		}
	}
	if accepted < 400 || accepted > 3600 {
		t.Errorf("%d of 4000 were accepted", accepted)
	}
}

// someChunks returns a chunked body, which may be broken, with what is behind it.
func someChunks(r *rand.Rand) (text []byte) {
	for range r.IntN(6) {
		data := bytes.Repeat([]byte("data "), 1+r.IntN(20)*r.IntN(20)*r.IntN(20))[:1+r.IntN(5)]
		if r.IntN(4) == 0 {
			data = bytes.Repeat([]byte("more data "), 1+r.IntN(1000))
		}
		extension := []string{"", "", "", " ", "\t", ";a=b", "; c=\"d\"", " ;e", ";" + strings.Repeat("x", r.IntN(5000))}
		text = fmt.Appendf(text, "%s%x%s\r\n%s\r\n", []string{"", "", "0", "000000000000"}[r.IntN(4)], len(data),
			extension[r.IntN(len(extension))], data)
	}
	text = append(text, []string{"0\r\n\r\n", "0\r\n", "000;x\r\nA: b\r\n\r\nbehind", "",
		"0\r\n\r\nHTTP/1.1 200 OK\r\n"}[r.IntN(5)]...)
	if r.IntN(2) == 0 && len(text) > 0 { // break it
		at := r.IntN(len(text))
		switch wrong := "\r\n;0fg -x\x00"; r.IntN(3) {
		case 0:
			text[at] = wrong[r.IntN(len(wrong))]
		case 1:
			text = append(text[:at], text[at+1:]...)
		default:
			text = append(text[:at], append([]byte{wrong[r.IntN(len(wrong))]}, text[at:]...)...)
		}
	}
	return text
}

func cut(r *rand.Rand, text []byte) (pieces [][]byte) {
	size := []int{1, 5, 100, 10000}[r.IntN(4)]
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(size))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// Many small chunks that have come are one read, and the end comes with the last of them.
func TestChunksThatHaveComeAreOneRead(t *testing.T) {
	text := strings.Repeat("1\r\nx\r\n", 100) + "0\r\n\r\n"
	c := &chunkedReader{r: bufio.NewReaderSize(strings.NewReader(text), connBuffer)}
	if n, err := c.Read(make([]byte, 200)); n != 100 || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// The first bytes of a chunked body are awaited without a goroutine: until a byte of data
// has come, or the whole end, and no part of the framing in between is enough.
func TestTheFirstChunkOfABodyCanBeAwaited(t *testing.T) {
	for _, c := range []struct {
		pieces []string // the last one brings what Read returns
		want   string
	}{
		{[]string{"5\r", "\n", "h"}, "h"},
		{[]string{"5;ext", "ension\r\n", "hello\r\n0\r\n\r\n"}, "hello"},
		{[]string{"0\r\n", "\r\n"}, ""},
		{[]string{"0\r\nA: b\r\n", "\r\n"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := make(chan string)
			u := pipeClient(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4<<10))
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for piece := range next {
					_, _ = io.WriteString(conn, piece)
				}
			})
			defer u.Close()
			res, err := u.RoundTrip(clearRequest(t.Context(), nil), Route{})
			must.Do(t, err)
			body := res.Body.(*h1Body)
			for i, piece := range c.pieces {
				if body.Buffered() != 0 || body.WaitData(time.Now().Add(time.Second)) {
					t.Errorf("%q: there is something after %d", c.pieces, i)
				}
				next <- piece
			}
			if !body.WaitData(time.Now().Add(time.Second)) || body.Buffered() == 0 {
				t.Errorf("%q: nothing is there", c.pieces)
			}
			started := time.Now()
			got := make([]byte, 10)
			n, err := body.Read(got)
			if string(got[:n]) != c.want || err != nil && err != io.EOF || time.Since(started) > 0 {
				t.Errorf("%q: read %q, %v, after %v", c.pieces, got[:n], err, time.Since(started))
			}
			close(next)
			_ = body.Close()
		})
	}
}

// A host that sends a byte in each chunk is served, one that pads its chunks is not.
func TestChunksWithNextToNoDataAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		chunk string
		want  error
	}{
		"bytes":  {"1\r\nx\r\n", nil},
		"padded": {"1;" + strings.Repeat("p", 1000) + "\r\nx\r\n", errOverhead},
		"long":   {"1;" + strings.Repeat("p", maxChunkLine) + "\r\nx\r\n", errChunkLine},
	} {
		text := strings.Repeat(c.chunk, 10000) + "0\r\n\r\n"
		_, err := io.ReadAll(&chunkedReader{r: bufio.NewReaderSize(strings.NewReader(text), 2*connBuffer)})
		_, theirs := io.ReadAll(httputil.NewChunkedReader(bufio.NewReaderSize(strings.NewReader(text), 2*connBuffer)))
		if !errors.Is(err, c.want) || (err == nil) != (theirs == nil) {
			t.Errorf("%s: %v, want %v; net/http: %v", name, err, c.want, theirs)
		}
	}
}
