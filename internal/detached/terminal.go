// Package detached is the terminal of a command at which no person has to sit.
//
// The process of a session calls [New], gives the [Terminal] to the command as its
// streams, and calls [Terminal.Open] when the session is open:
//
//	t := detached.New(terminal.Size{Height: 24, Width: 80})
//	defer t.End(detached.End{})
//	if err := t.Open(detached.Session{Home: home, ID: s.ID(), Dir: s.Dir(), Agent: agent}); err != nil {
//		return err
//	}
//
// Other processes of the user call [Attach] to connect a terminal of a person, one
// at a time: a later one takes the place of an earlier one. What the command writes
// is in files of the home too, as far as [MaxOutput] allows: [Output.Copy] reads
// it, while the session runs and afterwards. [Prune] removes it.
//
// The command is never held up for long: neither by a terminal that takes no output
// nor by a disk that is full. A socket of mode 0600 in the session's directory, which
// no sandbox has, is the only way in, and it is for processes of the same user that
// are in no container.
package detached

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// Session is the session whose command has a [Terminal].
type Session struct {
	Home, ID, Agent string
	Dir             string // its own, in which the socket is
	// Redact returns a reader of what is recorded from one of what the command
	// writes. Nil changes nothing.
	Redact func(io.ReadCloser) io.ReadCloser
	// Alive reports whether the session with an id runs. The output of older ones is
	// removed.
	Alive func(id string) bool
}

// Terminal is the terminal of a command. Its Read returns what a person types who
// is attached, and its Write takes what the command writes.
type Terminal struct {
	first   terminal.Size
	session Session
	input   chan []byte
	replies chan []byte // to a command that asks while no terminal is attached
	unread  []byte      // of the last input
	resized chan terminal.Size
	ended   chan struct{}
	end     sync.Once

	listener net.Listener // nil before Open
	serving  sync.WaitGroup

	// attached is the connection that holds the place of the one terminal: closing
	// it ends a write to it, for which mu is held.
	attached atomic.Pointer[client]
	mu       sync.Mutex // guards the order of what attached terminals get, and all below
	modes    terminal.Modes
	record   *recorder // nil before Open
}

// typedAhead is how many frames of input wait for a command that does not read. Then
// what is typed waits on the person's side.
const typedAhead = 256

// New returns a terminal of a size, for a command that is about to start.
func New(first terminal.Size) *Terminal {
	return &Terminal{
		first: first, input: make(chan []byte, typedAhead), replies: make(chan []byte, 16),
		resized: make(chan terminal.Size), ended: make(chan struct{}),
	}
}

// First returns the size with which the terminal begins.
func (t *Terminal) First() terminal.Size { return t.first }

// Resized receives the sizes that follow.
func (t *Terminal) Resized() <-chan terminal.Size { return t.resized }

// socketPath returns the path of the socket in a session's directory.
func socketPath(dir string) string { return filepath.Join(dir, "attach.sock") }

// Open begins to record what the command writes, and to let terminals be attached.
func (t *Terminal) Open(s Session) error {
	t.session = s
	record, err := newRecorder(s)
	if err != nil {
		return hint.New(err, "check the disk and the rights on %s", s.Home)
	}
	l, err := unixsocket.Listen(socketPath(s.Dir), 0o600)
	if err != nil {
		record.close()
		return hint.New(err, "check the disk and the rights on %s", s.Home)
	}
	t.mu.Lock()
	t.record, t.listener = record, l
	t.mu.Unlock()
	t.serving.Go(t.serve)
	return nil
}

// Read returns what the person types who is attached. It ends with the terminal.
func (t *Terminal) Read(p []byte) (int, error) {
	if len(t.unread) == 0 {
		select {
		case t.unread = <-t.input:
		case t.unread = <-t.replies:
		case <-t.ended:
			return 0, io.EOF
		}
	}
	n := copy(p, t.unread)
	t.unread = t.unread[n:]
	return n, nil
}

// Write takes what the command writes, shows it to the terminal that is attached, and
// records it. It never fails: what cannot be recorded is not.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modes.Scan(p)
	if t.record != nil {
		t.record.write(p)
	}
	c := t.attached.Load()
	if replies := t.modes.Replies(); len(replies) > 0 && (c == nil || c.size == (terminal.Size{})) {
		select {
		case t.replies <- replies:
		default: // it asks and does not read
		}
	}
	if c != nil {
		for rest := p; len(rest) > 0; {
			n := min(len(rest), maxFrame)
			if !c.send(kindOutput, rest[:n]) {
				break
			}
			rest = rest[n:]
		}
		select {
		case c.drawn <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}

// End ends the terminal, and tells the person who is attached how the session ended.
// Only the first call does anything.
func (t *Terminal) End(e End) {
	t.end.Do(func() {
		if c := t.attached.Load(); c != nil {
			t.mu.Lock()
			e.Messages = e.Messages[max(0, len(e.Messages)-maxFrame/8):] // JSON takes up to six bytes for one
			c.sendLast(kindEnd, e)
			t.mu.Unlock()
		}
		close(t.ended)
		if t.listener != nil {
			_ = t.listener.Close()
		}
		if c := t.attached.Load(); c != nil {
			c.close()
		}
		t.serving.Wait()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.record != nil {
			t.record.close()
		}
	})
}

// Forget removes the output, after the end of a session whose command did not begin.
func (t *Terminal) Forget() {
	if t.session.ID != "" {
		_ = Remove(t.session.Home, t.session.ID)
	}
}

// attachedPath returns the path of the file that a session's directory has while a
// terminal is attached.
func attachedPath(dir string) string { return filepath.Join(dir, "attached") }

// IsAttached reports whether a terminal is attached to the session of a directory.
func IsAttached(dir string) bool {
	_, err := os.Stat(attachedPath(dir))
	return err == nil
}
