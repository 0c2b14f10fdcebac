package capture

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// messages are those of a WebSocket, as far as there is room: MaxBody of both directions.
type messages struct {
	file *File

	mu   sync.Mutex // the two directions are relayed at the same time
	all  []*message
	open [2]*message // by direction, as long as it is in pieces
	held int
	cut  string // why they are not all
	over bool
}

// message is one of text or binary data.
type message struct {
	at   time.Time
	way  int
	op   byte
	data []byte
	cut  bool
}

const (
	received, sent = 0, 1 // ways
	messageSize    = 256  // what a message takes besides its data
	opBinary       = 2    // RFC 6455 section 5.2; a control frame is above
)

// Messages returns a function that records a WebSocket's messages in pieces: sent by the client, or as the client gets
// them, with the opcode of the frame. Control frames are not recorded. The function is safe for concurrent use by the
// two directions; nil records nothing.
func (e *Exchange) Messages() func(bySender bool, op byte, piece []byte, end bool) {
	if e == nil {
		return nil
	}
	e.messages = &messages{file: e.file}
	return e.messages.add
}

func (m *messages) add(bySender bool, op byte, piece []byte, end bool) {
	if op > opBinary {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	way := received
	if bySender {
		way = sent
	}
	if op != 0 {
		m.open[way] = nil
		if m.take(messageSize) {
			m.open[way] = &message{at: time.Now(), way: way, op: op}
			m.all = append(m.all, m.open[way])
		}
	}
	if to := m.open[way]; to != nil && len(piece) > 0 {
		if to.cut = to.cut || !m.take(len(piece)); !to.cut {
			to.data = append(to.data, piece...)
		}
	}
	if end {
		m.open[way] = nil
	}
}

// take reserves memory, and reports whether there was enough.
func (m *messages) take(n int) bool {
	switch {
	case m.cut != "":
	case m.held+n > MaxBody:
		m.cut = "the first MiB of its messages is recorded"
	case !m.file.take(n):
		m.cut = cutMemory
	default:
		m.held += n
		return true
	}
	return false
}

func (m *messages) end() {
	if m != nil {
		m.mu.Lock()
		m.over = true
		m.mu.Unlock()
	}
}

func (m *messages) release() {
	if m != nil {
		m.file.held.Add(-int64(m.held))
		m.all, m.held = nil, 0
	}
}

// entries returns the messages as Chromium's developer tools have them, redacted. One that is in pieces until the end
// of the connection, or was cut, is as far as it goes.
func (m *messages) entries(sets []*scrub.Set) []export.HARMessage {
	var all []export.HARMessage
	for _, one := range m.all {
		clean := redact(nil, [][]byte{one.data}, sets, one.cut || slices.Contains(m.open[:], one))
		e := export.HARMessage{Type: "receive", Time: float64(one.at.UnixMicro()) / 1e6, Opcode: int(one.op)}
		if one.way == sent {
			e.Type = "send"
		}
		if e.Data = strings.ToValidUTF8(string(clean), "\ufffd"); one.op == opBinary {
			e.Data = base64.StdEncoding.EncodeToString(clean)
		}
		all = append(all, e)
	}
	return all
}
