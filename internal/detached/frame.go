package detached

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// kind is the first byte of a frame. Its length follows, four bytes, and then
// what it holds.
type kind byte

const (
	kindHello  kind = 'h' // JSON, first in both directions: a hello, and a Hello
	kindInput  kind = 'i' // what a person has typed
	kindSize   kind = 's' // JSON: the size of a person's terminal
	kindOutput kind = 'o' // what the command has written
	kindTaken  kind = 't' // JSON: another terminal was attached; the last frame
	kindEnd    kind = 'e' // JSON: the session has ended; the last frame
)

// maxFrame bounds what one frame holds.
const maxFrame = 256 << 10

// hello is what the terminal of a person begins with.
type hello struct {
	Height, Width uint // 0: it is no terminal
}

// Hello is what the terminal of a session begins with.
type Hello struct {
	Session, Agent string
	Taken          int // the process whose place was taken; 0: none
}

// End is how a session ended.
type End struct {
	Code     int    // with which its process ends
	Messages string // of aileron, since the command began
}

// taken is who has taken the place of a terminal.
type taken struct{ PID int }

func appendFrame(to []byte, k kind, content []byte) []byte {
	to = binary.BigEndian.AppendUint32(append(to, byte(k)), uint32(len(content))) //nolint:gosec // at most maxFrame
	return append(to, content...)
}

// appendJSON appends a frame of v, which marshals.
func appendJSON(to []byte, k kind, v any) []byte {
	content, _ := json.Marshal(v) // of strings and numbers
	return appendFrame(to, k, content)
}

func readFrame(r *bufio.Reader) (k kind, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	content = make([]byte, n)
	_, err = io.ReadFull(r, content)
	return kind(head[0]), content, err
}
