package detached

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
