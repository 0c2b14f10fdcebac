package opaque

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// White space and a mark of UTF-8 hide nothing, in whatever pieces they come.
// They leave at once, and what is behind them is judged all the same.
func TestWhatIsBehindWhiteSpaceIsJudged(t *testing.T) {
	for how, reader := range readings {
		for name, o := range opaques() {
			if how != "whole" && o.want == "deflate" {
				continue
			}
			for _, before := range []string{"\n", " ", "\r\n\r\n", "\t  \n", utf8Mark, utf8Mark + "\r\n",
				strings.Repeat("\n", 2*headSize)} {
				data := append([]byte(before), o.data...)
				// what is skipped may be a part of it
				if how == "bytes" && len(before) > headSize || o.data[0] == '\n' || o.data[0] == 0 && o.want == UTF32 {
					continue
				}
				for _, length := range []int64{-1, int64(len(data))} {
					var got []Format
					b := NewBody(io.NopCloser(reader(bytes.NewReader(data))), length, refuse(&got))
					_ = b.Await(context.Background(), time.Minute)
					out, err := io.ReadAll(b)
					if !strings.HasPrefix(before, string(out)) || !errors.Is(err, errRefused) || len(got) != 1 || got[0] != o.want {
						t.Errorf("%s behind %q, %s: %d bytes left, %v, found %q", name, before, how, len(out), err, got)
					}
				}
			}
		}
	}
}

func TestAHeartbeatDoesNotWait(t *testing.T) {
	src, in := io.Pipe()
	b := NewBody(src, -1, refuse(new([]Format)))
	for range 3 {
		go func() { _, _ = in.Write([]byte("\n")) }()
		if n, err := b.Read(make([]byte, 100)); n != 1 || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
	}
	go func() { _, _ = in.Write([]byte("\x1f\x8b\x08")) }()
	if n, err := b.Read(make([]byte, 100)); n != 0 || !errors.Is(err, errRefused) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// A string of JSON may escape characters of base64, as PHP does with slashes
// and .NET with plus signs.
func TestBase64WithEscapesIsRead(t *testing.T) {
	o := opaques()["gzip 9"]
	text := base64.StdEncoding.EncodeToString(o.data)
	for name, s := range map[string]string{
		"line ends": `"` + text[:8] + `\n` + text[8:16] + `\r\n` + text[16:] + `"`,
		"slashes":   `"` + strings.ReplaceAll(text, "/", `\/`) + `"`,
		"a slash":   `"H4sIAAAA\/` + text[9:] + `"`, "numbers": fmt.Sprintf(`"\u%04x\u%04X%s"`, text[0], text[1], text[2:]),
		"single quotes": "'" + text + "'",
	} {
		for how, reader := range readings {
			var got []Format
			b := NewBody(io.NopCloser(reader(strings.NewReader(s))), -1, refuse(&got))
			if out, err := io.ReadAll(b); len(out) > 0 || !errors.Is(err, errRefused) || got[0] != "gzip" {
				t.Errorf("%s, %s: %d bytes left, %v, found %q", name, how, len(out), err, got)
			}
		}
	}
}

func TestBase64OfWideCharactersIsRecognised(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		text := base64.StdEncoding.EncodeToString(wideText(order))
		if got, _ := Sniff([]byte(text), false); got != UTF16 {
			t.Errorf("%v: got %q", order, got)
		}
	}
}

func TestAPartThatIsAMessageHasAHeader(t *testing.T) {
	for name, c := range map[string]struct {
		header, content string
		want            []string // values of X-Is
	}{
		"message": {"Content-Type: message/rfc822\r\nX-Is: outer\r\n\r\nX-Is: inner\r\n", "\x1f\x8b\x08",
			[]string{"outer", "inner"}},
		"long header": {"X-Is: long\r\nX-Long: " + strings.Repeat("a", 2*maxHeader) + "\r\nX-More: 1\r\n", "\x1f\x8b\x08",
			[]string{"long"}},
	} {
		for how, reader := range readings {
			var got []Format
			var seen []string
			body := "--b\r\n" + c.header + "\r\n" + c.content
			p := Parts(io.NopCloser(reader(strings.NewReader(body))),
				func(h textproto.MIMEHeader) error { seen = append(seen, h["X-Is"]...); return nil }, refuse(&got))
			out, err := io.ReadAll(p)
			if len(out) != len(body)-len(c.content) || !errors.Is(err, errRefused) || fmt.Sprint(seen) != fmt.Sprint(c.want) {
				t.Errorf("%s, %s: %d of %d bytes left, %v; headers %v", name, how, len(out), len(body), err, seen)
			}
		}
	}
}

func TestACompressedMessageInBase64EndsTheBody(t *testing.T) {
	for how, reader := range readings {
		for _, message := range []string{"", "m", "me", strings.Repeat("message ", 3000)} {
			for name, body := range map[string]string{
				"at once": base64.StdEncoding.EncodeToString(envelopes([]byte{0, 1}, message)),
				"padded": base64.StdEncoding.EncodeToString(envelopes([]byte{0}, message)) + "\r\n" +
					base64.URLEncoding.EncodeToString(envelopes([]byte{1}, message)),
			} {
				var got []Format
				out, err := io.ReadAll(TextMessages(io.NopCloser(reader(strings.NewReader(body))), refuse(&got)))
				if most := (5+len(message))*4/3 + 8; !errors.Is(err, errRefused) || len(out) > most ||
					!strings.HasPrefix(body, string(out)) {
					t.Errorf("%s, %s, messages of %d: %d bytes left, %v", name, how, len(message), len(out), err)
				}
			}
		}
		whole := base64.StdEncoding.EncodeToString(envelopes([]byte{0, 0, 0x80}, "plain"))
		if out, err := io.ReadAll(TextMessages(io.NopCloser(reader(strings.NewReader(whole))),
			refuse(new([]Format)))); string(out) != whole || err != nil {
			t.Errorf("%s: %q, %v", how, out, err)
		}
	}
}

// slowly is a source of pieces. Each but the first comes only when it was waited
// for, and none after them.
type slowly struct {
	pieces []string
	come   bool
	waited []time.Time
}

func (s *slowly) Buffered() int {
	if !s.come {
		return 0
	}
	return len(s.pieces[0])
}

func (s *slowly) WaitData(until time.Time) bool {
	s.waited = append(s.waited, until)
	s.come = len(s.pieces) > 0
	return s.come
}

func (s *slowly) Read(p []byte) (int, error) {
	if !s.come {
		return 0, errors.New("read although nothing has come")
	}
	n := copy(p, s.pieces[0])
	s.pieces, s.come = s.pieces[1:], false
	return n, nil
}

func (s *slowly) Close() error { return nil }

// A source that can be waited for is read only when it has something, and is
// waited for no longer than asked for, all in all.
func TestASourceIsWaitedForWithoutAGoroutine(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		come   bool // the first is there
		waits  int
		want   error
	}{
		"there already":       {[]string{"\x1f\x8b\x08"}, true, 0, errRefused},
		"in the next record":  {[]string{"\x1f\x8b\x08"}, false, 1, errRefused},
		"a byte at a time":    {[]string{"\x1f", "\x8b", "\x08"}, true, 2, errRefused},
		"plain text":          {[]string{"{\"a\":1}"}, false, 1, nil},
		"too little to judge": {[]string{"\x1f", "\x8b"}, true, 2, nil},
		"nothing at all":      {nil, false, 1, nil},
	} {
		var got []Format
		src := &slowly{pieces: c.pieces, come: c.come}
		b := NewBody(src, -1, refuse(&got))
		before := time.Now()
		if err := b.Await(context.Background(), time.Minute); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if b.ahead != nil || len(src.waited) != c.waits {
			t.Errorf("%s: it waited %d times, want %d; a goroutine is %v", name, len(src.waited), c.waits, b.ahead != nil)
		}
		for _, until := range src.waited {
			if until != src.waited[0] || until.Before(before.Add(time.Minute)) || until.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s: it waited until %v", name, src.waited)
			}
		}
	}
}
