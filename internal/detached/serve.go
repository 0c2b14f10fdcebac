package detached

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/internal/unixsocket"
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

// redrawPauses are the least times between the two sizes that make a program draw its screen anew, at each attempt.
// Programs that find the size unchanged draw nothing: Claude Code looks 200 ms after the last change, and on a busy
// machine any program may look only after both.
var redrawPauses = []time.Duration{400 * time.Millisecond, time.Second, 4 * time.Second}

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

const (
	// stallTime is how long a terminal may take no output before it is let go: the
	// command waits for it meanwhile.
	stallTime = 5 * time.Second
	// asideTime is how long a terminal that another takes the place of has for a last
	// frame.
	asideTime = time.Second
	// helloTime is how long a client has to begin.
	helloTime = 5 * time.Second
	// redrawWait is the most time that a command has to write something, once it has another size.
	redrawWait = 10 * time.Second
	// redrawn is how many letters are a screen that was drawn anew. What moves in it has fewer.
	redrawn = 64
	// maxCallers bounds the connections at once, of which one is attached.
	maxCallers = 16
)

// client is the connection to a terminal of a person.
type client struct {
	conn net.Conn
	pid  int
	size terminal.Size // the first one; zero: it is no terminal
	once sync.Once
	gone chan struct{} // closed when the connection is

	drawn  chan struct{} // gets a value when the command has written something
	sizing sync.Mutex    // guards newest, and the order of sizes
	newest terminal.Size
}

// close closes the connection: a write to it ends.
func (c *client) close() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.conn.Close()
	})
}

// send sends a frame and reports whether it was taken. A client that takes none for too
// long is closed. One that has closed its end is not: what was typed before it did is
// still to be read.
func (c *client) send(k kind, content []byte) bool {
	return c.write(appendFrame(make([]byte, 0, 5+len(content)), k, content))
}

func (c *client) write(frame []byte) bool {
	// Each piece that the client takes is progress.
	for len(frame) > 0 {
		_ = c.conn.SetWriteDeadline(time.Now().Add(stallTime))
		n, err := c.conn.Write(frame)
		frame = frame[n:]
		switch late := errors.Is(err, os.ErrDeadlineExceeded); {
		case late && n == 0:
			c.close()
			return false
		case err != nil && !late:
			return false
		}
	}
	return true
}

// sendLast sends the last frame, and lets the client read it.
func (c *client) sendLast(k kind, v any) {
	if c.write(appendJSON(nil, k, v)) {
		c.close()
	}
}

// serve accepts connections until the terminal ends.
func (t *Terminal) serve() {
	callers := make(chan struct{}, maxCallers)
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		callers <- struct{}{}
		t.serving.Go(func() {
			defer func() { <-callers }()
			t.call(conn)
		})
	}
}

// call serves one connection: it attaches it if it is one of this user.
func (t *Terminal) call(conn net.Conn) {
	c := &client{conn: conn, gone: make(chan struct{}), drawn: make(chan struct{}, 1)}
	defer c.close()
	// The mode of the socket and its directory keep others away. A process in a
	// container may have the user's uid, and must not reach the host's terminal.
	pid, err := unixsocket.CheckPeer(conn, true)
	if err != nil {
		return
	}
	c.pid = pid
	r := bufio.NewReaderSize(conn, 4<<10)
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	k, content, err := readFrame(r)
	var said hello
	if err != nil || k != kindHello || json.Unmarshal(content, &said) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	c.size = terminal.Size{Height: said.Height, Width: said.Width}
	c.newest = c.size
	t.attach(c)
	var redraw sync.WaitGroup
	defer redraw.Wait()
	defer t.detach(c)
	redraw.Go(func() { t.redraw(c) })
	t.follow(c, r)
}

// attach puts c in the place of the one attached terminal.
func (t *Terminal) attach(c *client) {
	answer := Hello{Session: t.session.ID, Agent: t.session.Agent}
	before := t.attached.Load()
	if before != nil {
		before.sendAside(kindTaken, taken{PID: c.pid}) // a write under way must not keep c waiting
		answer.Taken = before.pid
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.attached.Swap(c); last != nil && last != before {
		last.close()
	}
	_ = os.WriteFile(attachedPath(t.session.Dir), nil, 0o600) // best effort: for session list
	frames := appendJSON(nil, kindHello, answer)
	if redo := t.modes.Redo(); redo != "" {
		frames = appendFrame(frames, kindOutput, []byte(redo))
	}
	c.write(frames)
}

// sendAside sends a last frame, unless the client does not take it at once.
func (c *client) sendAside(k kind, v any) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(asideTime))
	_, _ = c.conn.Write(appendJSON(nil, k, v))
	c.close()
}

// detach takes c out of its place, unless another has taken that.
func (t *Terminal) detach(c *client) {
	c.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached.CompareAndSwap(c, nil) {
		_ = os.Remove(attachedPath(t.session.Dir))
	}
}

// redraw makes the command draw its screen anew, by a size that differs and then the one of c. Whether a command has
// seen both cannot be known: an animation goes on meanwhile, and the engine passes sizes on when it comes to it. So the
// attempt is repeated, with more time between, until as much was written as a screen has.
func (t *Terminal) redraw(c *client) {
	if c.size == (terminal.Size{}) {
		return
	}
	for i, pause := range redrawPauses {
		before := t.letters()
		if !t.resizeShortly(c, pause, i == 0) || !t.pause(c, pause, nil) || t.letters()-before >= redrawn {
			return
		}
	}
}

// letters returns how many letters the command has written.
func (t *Terminal) letters() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.modes.Letters()
}

// resizeShortly changes the size to one that differs from the one of c, and then to that: after a pause and, with wait,
// once the command has written something.
func (t *Terminal) resizeShortly(c *client, pause time.Duration, wait bool) bool {
	c.sizing.Lock()
	other := c.newest
	c.sizing.Unlock()
	if other.Height > 2 {
		other.Height--
	} else {
		other.Height++
	}
	select {
	case <-c.drawn: // before it has the other size
	default:
	}
	for range 2 { // the second is taken when the engine has passed on the first
		if !t.resize(c, other) {
			return false
		}
	}
	if !t.pause(c, pause, nil) || wait && !t.pause(c, redrawWait, c.drawn) {
		return false
	}
	c.sizing.Lock()
	defer c.sizing.Unlock()
	return t.resize(c, c.newest)
}

// pause waits for a time, or for until, and reports whether c is still there.
func (t *Terminal) pause(c *client, most time.Duration, until <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-until:
		return true
	case <-c.gone:
	case <-t.ended:
	}
	return false
}

// resize changes the size of the command's terminal, and reports whether it did.
func (t *Terminal) resize(c *client, size terminal.Size) bool {
	select {
	case t.resized <- size:
		return true
	case <-c.gone:
	case <-t.ended:
	}
	return false
}

// resizeTo changes the size of the command's terminal to the one that c has now.
func (t *Terminal) resizeTo(c *client, size terminal.Size) bool {
	c.sizing.Lock()
	defer c.sizing.Unlock()
	c.newest = size
	return t.resize(c, size)
}

// follow passes on what c sends, until it is gone.
func (t *Terminal) follow(c *client, r *bufio.Reader) {
	for {
		k, content, err := readFrame(r)
		if err != nil {
			return
		}
		switch k {
		case kindInput:
			select {
			case t.input <- content:
			case <-c.gone:
				return
			case <-t.ended:
				return
			}
		case kindSize:
			var size terminal.Size
			if json.Unmarshal(content, &size) == nil && size.Height > 0 && size.Width > 0 && !t.resizeTo(c, size) {
				return
			}
		}
	}
}
