package websocket

import (
	"bufio"
	"io"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// inward relays the upstream's frames to the client, redacted.
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
	if err := validateClose(h, payload); err != nil {
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

// message is one message of the upstream in transit to the client.
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

// part sends what the scanner releases as a frame of its own. The last frame is
// sent even if it is empty, so that the message ends.
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
	m.r.record(false, m.op, m.out[room:], end)
	head := header{fin: end, op: m.op, length: n}.append(nil)
	m.op = opContinuation
	frame := m.out[room-len(head):]
	copy(frame, head)
	m.r.toClient.Lock()
	defer m.r.toClient.Unlock()
	m.r.Received += n
	if !m.r.ToClient.Stall(MovingMemory) {
		return budget.ErrShed
	}
	_, err := m.r.Client.Write(frame)
	if m.r.ToClient.Move(MovingMemory); end {
		m.out = nil
	}
	return err
}
