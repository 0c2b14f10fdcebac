package detached

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// Attachment is how a person is attached to the terminal of a session.
type Attachment struct {
	Dir string // the session's
	In  io.Reader
	Out io.Writer
	// Keys are those that detach, as [CheckKeys] accepts them.
	Keys string
	// Attached is called once the terminal is attached, before anything is shown.
	Attached func(h Hello, onTerminal bool)
}

// Errors of [Attach].
var (
	// ErrDetached is returned when the person typed the keys, or their terminal went
	// away. The session goes on.
	ErrDetached = errors.New("detached")
	// ErrLost is returned when the session's process has closed the connection.
	ErrLost = errors.New("the connection to the session was closed")
	// ErrRefused is returned when no session listens.
	ErrRefused = errors.New("the session's process does not answer")
)

// TakenError is returned when another terminal was attached.
type TakenError struct{ PID int }

func (e *TakenError) Error() string {
	return fmt.Sprintf("another terminal was attached, by process %d", e.PID)
}

// keyPause is how long a key is held back that may be the first of those that detach.
const keyPause = 500 * time.Millisecond

// attached is a connection to the terminal of a session, seen from the person's side.
type attached struct {
	Attachment
	conn net.Conn
	in   *bufio.Reader
	term *terminal.Terminal

	sending sync.Mutex
	keys    watcher
	typed   chan []byte
	over    chan struct{} // closed when run returns: nothing takes from typed any more
	hungUp  chan struct{} // closed when the person's terminal is gone
}

// Attach connects a person to the terminal of a session until it ends, and returns how
// it did. The person's terminal is in raw mode meanwhile, and is then restored. If In
// and Out are not both terminals, what is read and written is only passed on, and the
// end of In does not detach. Attach returns ctx.Err() when ctx ends. A read of In may
// still be under way when Attach returns.
func Attach(ctx context.Context, a Attachment) (End, error) {
	keys, err := parseKeys(a.Keys)
	if err != nil {
		return End{}, err
	}
	conn, err := unixsocket.Dial(ctx, socketPath(a.Dir))
	if err != nil {
		return End{}, ErrRefused
	}
	defer conn.Close()
	if _, err := unixsocket.CheckPeer(conn, false); err != nil {
		return End{}, err
	}
	s := &attached{
		Attachment: a, conn: conn, in: bufio.NewReaderSize(conn, 64<<10), term: &terminal.Terminal{},
		keys: watcher{keys: keys}, typed: make(chan []byte), over: make(chan struct{}), hungUp: make(chan struct{}),
	}
	if in, out := asTerminal(a.In), asTerminal(a.Out); in != nil && out != nil {
		s.term = terminal.Open(in, out, nil)
	}
	return s.run(ctx)
}

// writerFunc is a function to which all is written.
type writerFunc func(p []byte)

func (w writerFunc) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// asTerminal returns the terminal that a stream is, or nil.
func asTerminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

func (s *attached) run(ctx context.Context) (End, error) {
	size, _ := s.term.Size()
	first := hello{Height: size.Height, Width: size.Width}
	if _, err := s.conn.Write(appendJSON(nil, kindHello, first)); err != nil {
		return End{}, ErrRefused
	}
	var h Hello
	if k, content, err := readFrame(s.in); err != nil || k != kindHello || json.Unmarshal(content, &h) != nil {
		return End{}, ErrRefused
	}
	s.Attached(h, s.term.Exists())
	defer s.term.Restore(false)
	if err := s.term.Raw(); err != nil {
		return End{}, err
	}
	type result struct {
		end End
		err error
	}
	shown := make(chan result, 1)
	go func() { // ends with the connection
		defer s.restoreAtPanic()
		end, err := s.show()
		shown <- result{end, err}
	}()
	defer close(s.over)
	go s.read()
	var held <-chan time.Time
	for {
		select {
		case r := <-shown:
			return r.end, r.err
		case typed := <-s.typed:
			pass, detach := s.keys.feed(typed)
			s.send(kindInput, pass)
			if detach {
				return End{}, ErrDetached
			}
			if held = nil; len(s.keys.held) > 0 {
				held = time.After(keyPause)
			}
		case <-held:
			held = nil
			s.send(kindInput, s.keys.release())
		case <-s.hungUp:
			return End{}, ErrDetached
		case <-s.term.Resized():
			if size, ok := s.term.Size(); ok {
				content, _ := json.Marshal(size) // numbers
				s.send(kindSize, content)
			}
		case <-ctx.Done():
			return End{}, ctx.Err()
		}
	}
}

// send sends a frame. If it cannot be sent, the connection is closed, which show finds.
func (s *attached) send(k kind, content []byte) {
	if len(content) == 0 {
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	_, _ = s.conn.Write(appendFrame(nil, k, content))
}

// read reads what is typed. It ends with In, or with the first read after run has returned: a read of a terminal cannot
// be interrupted.
func (s *attached) read() {
	defer s.restoreAtPanic()
	for {
		buf := make([]byte, 4<<10)
		n, err := s.In.Read(buf)
		if n > 0 {
			select {
			case s.typed <- buf[:n]:
			case <-s.over:
				return
			}
		}
		if err != nil {
			if s.term.Exists() {
				close(s.hungUp)
			}
			return
		}
	}
}

// restoreAtPanic restores the terminal before the program ends with a panic.
func (s *attached) restoreAtPanic() {
	if p := recover(); p != nil {
		s.term.Restore(false)
		panic(p)
	}
}

// show shows what the command writes, until the last frame.
func (s *attached) show() (end End, err error) {
	out := s.Out
	if s.term.Exists() {
		out = s.term
	} else if tty := asTerminal(s.Out); tty != nil {
		var modes terminal.Modes
		out = io.MultiWriter(tty, writerFunc(modes.Scan))
		defer func() { _, _ = tty.WriteString(modes.Undo()) }()
	}
	for {
		k, content, err := readFrame(s.in)
		if err != nil {
			return end, ErrLost
		}
		switch k {
		case kindOutput:
			if _, err := out.Write(content); err != nil {
				return end, fmt.Errorf("show the session's output: %w", err)
			}
		case kindTaken:
			var by taken
			_ = json.Unmarshal(content, &by) // without it the process is not known
			return end, &TakenError{by.PID}
		case kindEnd:
			if json.Unmarshal(content, &end) != nil {
				return end, ErrLost
			}
			return end, nil
		}
	}
}

// DefaultKeys are the keys that detach a terminal, unless others are chosen: those
// of Docker and Podman.
const DefaultKeys = "ctrl-p,ctrl-q"

// maxKeys bounds a sequence of keys.
const maxKeys = 8

// parseKeys returns the bytes that a terminal sends for keys, as ctrl-p,ctrl-q or
// ctrl-a,d.
func parseKeys(text string) ([]byte, error) {
	var keys []byte
	for word := range strings.SplitSeq(text, ",") {
		letter, ctrl := strings.CutPrefix(word, "ctrl-")
		if len(letter) != 1 || letter[0] <= ' ' || letter[0] > '~' {
			return nil, fmt.Errorf("%q is no key; keys are characters, or ctrl- with one of a-z @ [ \\ ] ^ _, "+
				"with commas between them", word)
		}
		c := letter[0]
		if ctrl {
			if upper := bytes.ToUpper([]byte{c})[0]; upper >= '@' && upper <= '_' {
				c = upper & 0x1f
			} else {
				return nil, fmt.Errorf("%q is no key: ctrl- goes with one of a-z @ [ \\ ] ^ _", word)
			}
		}
		keys = append(keys, c)
	}
	if len(keys) > maxKeys {
		return nil, errors.New("there are more than " + strconv.Itoa(maxKeys) + " keys")
	}
	return keys, nil
}

// CheckKeys returns an error for keys that cannot be typed.
func CheckKeys(text string) error {
	_, err := parseKeys(text)
	return err
}

// watcher watches what a person types for the keys that detach. Keys that may be the
// first of them are held back.
type watcher struct {
	keys []byte
	held []byte
	n    int // how many of keys are held
}

// feed returns what of typed passes now, and whether the keys were typed.
func (w *watcher) feed(typed []byte) (pass []byte, detach bool) {
	for len(typed) > 0 {
		key, is, n := nextKey(typed)
		part := typed[:n]
		typed = typed[n:]
		switch {
		case is == noKey && w.n > 0:
			w.held = append(w.held, part...) // a key that is let go does not end the sequence
			continue
		case is == aKey && key == w.keys[w.n]:
			w.held, w.n = append(w.held, part...), w.n+1
			if w.n == len(w.keys) {
				return pass, true
			}
			continue
		}
		pass = append(pass, w.release()...)
		if is == aKey && key == w.keys[0] {
			w.held, w.n = append(w.held, part...), 1
			continue
		}
		pass = append(pass, part...)
	}
	return pass, false
}

// release returns what is held: it was something else.
func (w *watcher) release() []byte {
	held := w.held
	w.held, w.n = nil, 0
	return held
}

// what nextKey finds.
type keyKind int

const (
	otherInput keyKind = iota // no key that could detach
	aKey
	noKey // a key was let go, or one that only changes others was pressed
)

// nextKey returns the first key of what was typed, as the byte that a plain terminal
// sends for it, and how long it is. A program may have asked for another form of keys:
// that of the kitty keyboard protocol, CSI code;modifiers:event u, or of xterm's
// modifyOtherKeys, CSI 27;modifiers;code ~.
func nextKey(typed []byte) (key byte, is keyKind, n int) {
	if !bytes.HasPrefix(typed, []byte("\x1b[")) {
		return typed[0], aKey, 1
	}
	end := bytes.IndexFunc(typed[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 || end > 32 {
		return 0, otherInput, 1
	}
	params, final := strings.Split(string(typed[2:2+end]), ";"), typed[2+end]
	n = end + 3
	modifiers := ""
	switch {
	case final == 'u':
		if len(params) > 1 {
			modifiers = params[1]
		}
	case final == '~' && len(params) == 3 && params[0] == "27":
		params[0], modifiers = params[2], params[1]
	default:
		return 0, otherInput, n
	}
	code, _, _ := strings.Cut(params[0], ":")
	modifiers, event, _ := strings.Cut(modifiers, ":")
	number, err := strconv.Atoi(code)
	if err != nil {
		return 0, otherInput, n
	}
	const firstModifier, lastModifier = 57441, 57454 // Shift and its like are keys of their own
	if event == "3" || number >= firstModifier && number <= lastModifier {
		return 0, noKey, n
	}
	held, _ := strconv.Atoi(modifiers) // "": none
	const locks = 64 | 128             // of capitals and of numbers
	switch held = max(held-1, 0) &^ locks; {
	case held == 0 && number > ' ' && number <= '~':
		return byte(number), aKey, n
	case held == 4 && number >= '@' && number <= '~':
		return byte(number) & 0x1f, aKey, n
	}
	return 0, otherInput, n
}
