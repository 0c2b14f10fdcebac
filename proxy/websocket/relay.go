// Package websocket relays WebSocket frames (RFC 6455) between a box that is
// not trusted and an upstream whose words must be searched.
//
// Nothing passes as it came: every frame is read, judged and written anew.
// What the client sends gets a mask of ours, so that the client does not
// choose the bytes on the upstream's wire. What the upstream sends is
// scrubbed message by message, across the frames of one message; a hit is
// overwritten, so lengths stay. No extension is ever agreed on: compressed
// messages could not be searched.
package websocket

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Scanner wipes one message, in pieces. What Write and Flush give is valid
// until the next call.
type Scanner interface {
	Write(piece []byte) []byte
	Flush() []byte
	Hits() int
}

// Relay is one upgraded connection.
type Relay struct {
	Client, Upstream io.ReadWriteCloser
	// NewScanner starts on a message of the upstream's; nil scrubs nothing.
	NewScanner func() Scanner
	// ToClient and ToUpstream are what each direction holds; nil: nothing does.
	ToClient, ToUpstream *budget.Hold

	// After Run: the payload bytes of each direction, and the hits.
	Sent, Received int64
	Hits           int

	toClient, toUpstream sync.Mutex
	once                 sync.Once
}

const (
	piece = 16 << 10
	ahead = 4 << 10 // of a frame that has not come: its head, and a small payload
	room  = 14      // of a frame's head
)

// Idle and Moving are what a relay takes of its holds: while nothing is on its
// way, and for a piece that the client has not taken.
const (
	Idle   = 24 << 10
	Moving = 72 << 10
)

// buffers are those of frames that are on their way. A relay has none while it
// waits for one.
var buffers = sync.Pool{New: func() any { return new([room + piece]byte) }}

// Run relays until one side ends, breaks the protocol or End is called, and
// closes both. It reports why when that was not an orderly end.
func (r *Relay) Run() error {
	var up error
	done := make(chan struct{})
	go func() {
		defer close(done)
		up = r.outward()
		r.finish(up)
	}()
	down := r.inward()
	r.finish(down)
	<-done
	for _, err := range []error{up, down} {
		var v violation
		if errors.As(err, &v) {
			return err
		}
	}
	return nil
}

// End tells both sides that it is over, with a status code, and closes.
func (r *Relay) End(code int) {
	r.once.Do(func() {
		// A side that does not read may not keep the other from its end.
		for _, side := range []any{r.Client, r.Upstream} {
			if conn, ok := side.(interface{ SetWriteDeadline(t time.Time) error }); ok {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			}
		}
		late := time.AfterFunc(2*time.Second, func() { _ = r.Client.Close(); _ = r.Upstream.Close() })
		defer late.Stop()
		r.say(&r.toClient, r.Client, header{fin: true, op: opClose, length: 2}, []byte{byte(code >> 8), byte(code)})
		r.say(&r.toUpstream, r.Upstream, header{fin: true, op: opClose, length: 2, masked: true, mask: newMask()}, []byte{byte(code >> 8), byte(code)})
		_ = r.Client.Close()
		_ = r.Upstream.Close()
	})
}

func (r *Relay) finish(err error) {
	var v violation
	if errors.As(err, &v) {
		r.End(v.code)
		return
	}
	r.once.Do(func() {
		_ = r.Client.Close()
		_ = r.Upstream.Close()
	})
}

// say writes one small frame between others, unless a large one is on its way
// to a side that does not read.
func (r *Relay) say(turn *sync.Mutex, to io.Writer, h header, payload []byte) {
	if !turn.TryLock() {
		return
	}
	defer turn.Unlock()
	if h.masked {
		apply(h.mask, payload, 0)
	}
	_, _ = to.Write(append(h.append(nil), payload...))
}

func newMask() (mask [4]byte) {
	_, _ = rand.Read(mask[:])
	return mask
}

// outward relays the client's frames.
func (r *Relay) outward() error {
	in := bufio.NewReaderSize(r.Client, ahead)
	var order sequence
	var text utf8State
	for {
		h, err := readHeader(in, true)
		if err == nil {
			err = order.next(h)
		}
		if err != nil {
			return err
		}
		theirs := h.mask
		h.mask = newMask()
		if h.control() {
			payload := make([]byte, h.length)
			if _, err := io.ReadFull(in, payload); err != nil {
				return unexpected(err)
			}
			apply(theirs, payload, 0)
			if err := r.controlOutward(h, payload); err != nil {
				return err
			}
			continue
		}
		if err := r.frameOutward(in, h, theirs, order, &text); err != nil {
			return err
		}
	}
}

func (r *Relay) controlOutward(h header, payload []byte) error {
	if err := judgeClose(h, payload); err != nil {
		return err
	}
	frame := append(h.append(make([]byte, 0, 139)), payload...)
	apply(h.mask, frame[len(frame)-len(payload):], 0)
	r.toUpstream.Lock()
	defer r.toUpstream.Unlock()
	r.Sent += h.length
	_, err := r.Upstream.Write(frame)
	return err
}

// judgeClose refuses a close frame that no endpoint may send: RFC 6455
// sections 5.5.1 and 7.4.
func judgeClose(h header, payload []byte) error {
	if h.op != opClose || len(payload) == 0 {
		return nil
	}
	if len(payload) == 1 {
		return violation{protocolError, "a close frame has half a code"}
	}
	switch code := int(payload[0])<<8 | int(payload[1]); {
	case code < 1000, code == 1004, code == 1005, code == 1006, code > 1014 && code < 3000, code > 4999:
		return violation{protocolError, "a close frame has a code that is never sent"}
	case !utf8.Valid(payload[2:]):
		return violation{notUTF8, "the reason of a close frame is not UTF-8"}
	}
	return nil
}

func (r *Relay) frameOutward(in *bufio.Reader, h header, theirs [4]byte, order sequence, text *utf8State) error {
	r.toUpstream.Lock()
	defer r.toUpstream.Unlock()
	defer r.ToUpstream.Move(0)
	r.ToUpstream.Stall(0) // until all of it has come, and was taken
	if h.length > 0 {
		if _, err := in.Peek(1); err != nil {
			return unexpected(err)
		}
	}
	pooled := buffers.Get().(*[room + piece]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	out := h.append(buf[:0])
	for at := int64(0); at < h.length || at == 0; {
		n := int(min(h.length-at, piece))
		data := buf[len(out) : len(out)+n]
		// Only what is there: a frame leaves as it comes.
		if n > 0 {
			var err error
			if n, err = in.Read(data); err != nil {
				return unexpected(err)
			}
			data = data[:n]
		}
		apply(theirs, data, at)
		if order.text && !text.accept(data, h.fin && at+int64(n) == h.length) {
			return violation{notUTF8, "a text message is not UTF-8"}
		}
		apply(h.mask, data, at)
		if _, err := r.Upstream.Write(buf[:len(out)+n]); err != nil {
			return err
		}
		out = out[:0]
		r.Sent += int64(n)
		if at += int64(n); h.length == 0 {
			return nil
		}
	}
	return nil
}

// inward relays the upstream's frames, scrubbed.
func (r *Relay) inward() error {
	in := bufio.NewReaderSize(r.Upstream, ahead)
	var order sequence
	m := message{r: r}
	for {
		h, err := readHeader(in, false)
		if err == nil {
			err = order.next(h)
		}
		if err != nil {
			return err
		}
		if h.control() {
			payload := make([]byte, h.length)
			if _, err := io.ReadFull(in, payload); err != nil {
				return unexpected(err)
			}
			if err := r.controlInward(h, payload); err != nil {
				return err
			}
			continue
		}
		if h.op != opContinuation {
			m.begin(h.op)
		}
		if err := m.frame(in, h); err != nil {
			return err
		}
	}
}

// frame relays the payload of one frame, in pieces.
func (m *message) frame(in *bufio.Reader, h header) error {
	if h.length > 0 {
		if _, err := in.Peek(1); err != nil {
			return unexpected(err)
		}
	}
	pooled := buffers.Get().(*[room + piece]byte)
	defer buffers.Put(pooled)
	for left := h.length; ; {
		n := int(min(left, piece))
		if _, err := io.ReadFull(in, pooled[:n]); err != nil {
			return unexpected(err)
		}
		left -= int64(n)
		if err := m.part(pooled[:n], h.fin && left == 0); err != nil || left == 0 {
			return err
		}
	}
}

func (r *Relay) controlInward(h header, payload []byte) error {
	if err := judgeClose(h, payload); err != nil {
		return err
	}
	if r.NewScanner != nil {
		s := r.NewScanner()
		clean := append([]byte(nil), s.Write(payload)...)
		payload = append(clean, s.Flush()...)
		r.Hits += s.Hits()
	}
	r.toClient.Lock()
	defer r.toClient.Unlock()
	_, err := r.Client.Write(append(h.append(make([]byte, 0, 130)), payload...))
	return err
}

// message is one message of the upstream's on its way to the client.
type message struct {
	r       *Relay
	op      byte
	scanner Scanner
	out     []byte
}

func (m *message) begin(op byte) {
	m.op, m.scanner = op, nil
	if m.r.NewScanner != nil {
		m.scanner = m.r.NewScanner()
	}
}

// part sends what may leave of the message as a frame of its own; the last
// one always, so that the message ends.
func (m *message) part(p []byte, end bool) error {
	if cap(m.out) == 0 {
		m.out = make([]byte, room, 2*piece)
	}
	m.out = m.out[:room]
	if m.scanner == nil {
		m.out = append(m.out, p...)
	} else {
		m.out = append(m.out, m.scanner.Write(p)...)
		if end {
			m.out = append(m.out, m.scanner.Flush()...)
			m.r.Hits += m.scanner.Hits()
		}
	}
	n := int64(len(m.out) - room)
	if n == 0 && !end {
		return nil
	}
	head := header{fin: end, op: m.op, length: n}.append(nil)
	m.op = opContinuation
	frame := m.out[room-len(head):]
	copy(frame, head)
	m.r.toClient.Lock()
	defer m.r.toClient.Unlock()
	m.r.Received += n
	if !m.r.ToClient.Stall(Moving) {
		return budget.ErrShed
	}
	_, err := m.r.Client.Write(frame)
	if m.r.ToClient.Move(Moving); end {
		m.out = nil
	}
	return err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// utf8State checks a text message in pieces (RFC 6455 section 8.1).
type utf8State struct {
	rest [utf8.UTFMax]byte
	n    int
}

func (s *utf8State) accept(p []byte, end bool) bool {
	for s.n > 0 && len(p) > 0 {
		s.rest[s.n] = p[0]
		s.n, p = s.n+1, p[1:]
		if utf8.FullRune(s.rest[:s.n]) {
			if r, size := utf8.DecodeRune(s.rest[:s.n]); r == utf8.RuneError && size == 1 {
				return false
			}
			s.n = 0
		}
	}
	for i := max(0, len(p)-utf8.UTFMax+1); i < len(p); i++ {
		if utf8.RuneStart(p[i]) && !utf8.FullRune(p[i:]) {
			s.n = copy(s.rest[:], p[i:])
			p = p[:i]
			break
		}
	}
	if !utf8.Valid(p) {
		return false
	}
	if end && s.n > 0 {
		s.n = 0
		return false
	}
	return true
}
