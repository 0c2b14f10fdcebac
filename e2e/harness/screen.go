package harness

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Screen is a terminal with what a command has written to it.
type Screen struct {
	t     *testing.T
	file  *os.File
	ended chan struct{} // closed when the command has ended and all that it wrote was read
	read  chan struct{} // closed when there is nothing more to read

	mu   sync.Mutex
	text strings.Builder
}

// heldTime is how long what a command wrote is read after its end, where another process holds its terminal.
const heldTime = 10 * time.Second

// NewScreen starts a command in a terminal of its own, and ends it with the test.
func NewScreen(t *testing.T, cmd *exec.Cmd) *Screen {
	t.Helper()
	file := must.Get(pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 40, Cols: 120},
		&syscall.SysProcAttr{Setsid: true, Setctty: true}))(t)
	s := &Screen{t: t, file: file, ended: make(chan struct{}), read: make(chan struct{})}
	go s.readAll() // ends when no process has the terminal open
	go func() {
		_ = cmd.Wait()
		select {
		case <-s.read:
		case <-time.After(heldTime):
		}
		close(s.ended)
	}()
	t.Cleanup(func() {
		if !s.Ended() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			<-s.ended
		}
		_ = file.Close()
	})
	return s
}

func (s *Screen) readAll() {
	defer close(s.read)
	buf := make([]byte, 64<<10)
	for {
		n, err := s.file.Read(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if strings.Contains(string(buf[:n]), "\x1b[6n") { // where is the cursor?
			_, _ = s.file.WriteString("\x1b[1;1R")
		}
	}
}

// Ended reports whether the command has ended, and all that it wrote is in Text.
func (s *Screen) Ended() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Wait waits until the command has ended, and all that it wrote is in Text.
func (s *Screen) Wait() { <-s.ended }

// sequences are control sequences, strings and other escapes of ECMA-48.
var sequences = regexp.MustCompile("\x1b(\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|" +
	"[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")

// Text is all that was written, without escape sequences.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sequences.ReplaceAllString(s.text.String(), " ")
}

// Shown is Text without spaces: full-screen programs move the cursor instead of writing spaces.
func (s *Screen) Shown() string { return strings.Join(strings.Fields(s.Text()), "") }

// WaitFor waits until text, which has no spaces, was written after the first bytes of Shown, and returns where it ends.
func (s *Screen) WaitFor(text string, after int) (end int) {
	s.t.Helper()
	at := -1
	Poll(Patience, 50*time.Millisecond, func() bool {
		ended, shown := s.Ended(), s.Shown()
		at = strings.Index(shown[min(after, len(shown)):], text)
		return ended || at >= 0
	})
	if at < 0 {
		s.t.Fatalf("it shows no %q:\n%q", text, s.Shown())
	}
	return after + at + len(text)
}

// TryKeys types keys for a command that may have ended.
func (s *Screen) TryKeys(keys string) { _, _ = s.file.WriteString(keys) }

// Keys types keys.
func (s *Screen) Keys(keys string) {
	s.t.Helper()
	if _, err := s.file.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}
