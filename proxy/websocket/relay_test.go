package websocket

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

func frame(fin bool, op byte, masked bool, payload string) []byte {
	h := header{fin: fin, op: op, masked: masked, mask: [4]byte{9, 8, 7, 6}, length: int64(len(payload))}
	p := []byte(payload)
	if masked {
		apply(h.mask, p, 0)
	}
	return append(h.append(nil), p...)
}

// side is one end of a relay: what it says, and what it hears.
type side struct {
	io.Reader
	heard bytes.Buffer
}

func (s *side) Write(p []byte) (int, error) { return s.heard.Write(p) }
func (s *side) Close() error                { return nil }

// messages puts the heard frames together again.
func messages(t *testing.T, heard []byte, masked bool) []string {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(heard))
	var out []string
	var open strings.Builder
	var order sequence
	for {
		h, err := readHeader(r, masked)
		if err == io.EOF {
			return out
		}
		if err == nil {
			err = order.next(h)
		}
		if err != nil {
			t.Fatalf("the relay wrote a frame that it would refuse: %v", err)
		}
		if h.length > int64(len(heard)) {
			return append(out, "cut")
		}
		p := make([]byte, h.length)
		if _, err := io.ReadFull(r, p); err != nil {
			return append(out, "cut")
		}
		if masked {
			apply(h.mask, p, 0)
		}
		if h.control() {
			out = append(out, "control "+string(p))
			continue
		}
		open.Write(p)
		if h.fin {
			out = append(out, open.String())
			open.Reset()
		}
	}
}

const told = "s3cr3t-s3cr3t-s3cr3t-0123456789-abcdef"

func TestMessagesAreScrubbedInAnyChunking(t *testing.T) {
	set := scrub.NewSet([]scrub.Credential{{Secret: []byte(told)}})
	big := strings.Repeat("x", 40<<10)
	upstream := bytes.Join([][]byte{
		frame(true, opText, false, "before "+told+" after"),
		frame(false, opBinary, false, "pie"+told[:11]), frame(true, opPing, false, told),
		frame(false, opContinuation, false, told[11:30]), frame(true, opContinuation, false, told[30:]+"ces"),
		frame(true, opText, false, ""),
		frame(true, opBinary, false, big+told+big),
	}, nil)
	stars := strings.Repeat("*", len(told))
	want := []string{"before " + stars + " after", "control " + stars, "pie" + stars + "ces", "", big + stars + big}
	for name, in := range map[string]io.Reader{
		"whole": bytes.NewReader(upstream), "bytes": iotest.OneByteReader(bytes.NewReader(upstream)),
		"halves": iotest.HalfReader(bytes.NewReader(upstream)),
	} {
		client, origin := &side{Reader: strings.NewReader("")}, &side{Reader: in}
		r := Relay{Client: client, Upstream: origin, NewScanner: func() Scanner { return set.NewScanner() }}
		if err := r.inward(); err != io.EOF {
			t.Fatalf("%s: %v", name, err)
		}
		got := messages(t, client.heard.Bytes(), false)
		if len(got) != len(want) {
			t.Fatalf("%s: %d messages, want %d", name, len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: message %d is %.80q, want %.80q", name, i, got[i], want[i])
			}
		}
		if r.Hits != 4 {
			t.Errorf("%s: %d hits, want 4", name, r.Hits)
		}
	}
}

func TestTheClientsMaskDoesNotReachTheUpstream(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 5000)
	client := &side{Reader: bytes.NewReader(append(frame(true, opBinary, true, big),
		frame(true, opText, true, "grüße")...))}
	origin := &side{Reader: strings.NewReader("")}
	r := Relay{Client: client, Upstream: origin}
	if err := r.outward(); err != io.EOF {
		t.Fatal(err)
	}
	if got := messages(t, origin.heard.Bytes(), true); len(got) != 2 || got[0] != big || got[1] != "grüße" {
		t.Errorf("the upstream heard %.100q", got)
	}
	if mask := origin.heard.Bytes()[10:14]; binary.BigEndian.Uint32(mask) == 0x09080706 {
		t.Error("the frame has the client's mask")
	}
	if r.Sent != int64(len(big)+len("grüße")) {
		t.Errorf("counted %d bytes", r.Sent)
	}
}

// broken is an end that takes nothing.
type broken struct{ side }

var errBroken = errors.New("it takes nothing")

func (*broken) Write([]byte) (int, error) { return 0, errBroken }

// What could not be sent is not counted, and nothing is read behind it.
func TestAnEndThatTakesNothingEndsTheRelay(t *testing.T) {
	outward := Relay{Client: &side{Reader: bytes.NewReader(frame(true, opText, true, "hello"))}, Upstream: &broken{}}
	if err := outward.outward(); !errors.Is(err, errBroken) || outward.Sent != 0 {
		t.Errorf("outward: %v after %d bytes, want %v", err, outward.Sent, errBroken)
	}
	upstream := &side{Reader: bytes.NewReader(frame(true, opText, false, "hello"))}
	inward := Relay{Client: &broken{}, Upstream: upstream}
	if err := inward.inward(); !errors.Is(err, errBroken) {
		t.Errorf("inward: %v, want %v", err, errBroken)
	}
}

func TestOneSidesEndEndsTheOther(t *testing.T) {
	client, box := net.Pipe()
	upstream, origin := net.Pipe()
	ended := make(chan struct{})
	go func() { defer close(ended); r := Relay{Client: box, Upstream: upstream}; _ = r.Run() }()
	_ = client.Close()
	_ = origin.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if _, err := origin.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the upstream's connection gave %v, want its end", err)
	}
	<-ended
}

func FuzzRelay(f *testing.F) {
	f.Fuzz(func(t *testing.T, said, answered []byte) {
		client, origin := &side{Reader: bytes.NewReader(said)}, &side{Reader: bytes.NewReader(answered)}
		r := Relay{Client: client, Upstream: origin}
		_ = r.outward()
		_ = r.inward()
		messages(t, origin.heard.Bytes(), true)
		messages(t, client.heard.Bytes(), false)
	})
}

func FuzzUTF8(f *testing.F) {
	f.Add([]byte("grüße \xe2\x82\xac \xf0\x9f\x98\x80"), uint8(3))
	f.Add([]byte("\xe2\x82"), uint8(1))
	f.Add([]byte("\xef\xbf\xbd\xed\xa0\x80"), uint8(2))
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		var s utf8State
		ok := true
		for rest := text; ok; {
			n := min(int(step)+1, len(rest))
			ok = s.accept(rest[:n], n == len(rest))
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		if want := utf8.Valid(text); ok != want {
			t.Errorf("%q in steps of %d: %t, want %t", text, int(step)+1, ok, want)
		}
	})
}

func TestCloseFramesThatNobodyMaySendEndTheRelay(t *testing.T) {
	for payload, ok := range map[string]bool{
		"": true, "\x03\xe8": true, "\x03\xe8bye": true, "\x0b\xb8": true,
		"\x03": false, "\x03\xe7": false, "\x03\xed": false, "\x03\xee": false, "\x07\xd0": false, "\x13\x88": false,
		"\x03\xe8\xff": false,
	} {
		inward := Relay{Client: &side{Reader: strings.NewReader("")},
			Upstream: &side{Reader: bytes.NewReader(frame(true, opClose, false, payload))}}
		outward := Relay{Client: &side{Reader: bytes.NewReader(frame(true, opClose, true, payload))},
			Upstream: &side{Reader: strings.NewReader("")}}
		for name, err := range map[string]error{"inward": inward.inward(), "outward": outward.outward()} {
			var bad violation
			if refused := errors.As(err, &bad); refused == ok {
				t.Errorf("%s: a close with %q gives %v", name, payload, err)
			}
		}
	}
}
