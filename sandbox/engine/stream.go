package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"golang.org/x/sys/unix"
)

// Stream is the connection to the standard streams of a container.
type Stream struct {
	tty  bool
	conn types.HijackedResponse
}

// AttachOptions are which streams of a container are attached. Its output
// always is.
type AttachOptions struct {
	Stdin bool
	TTY   bool // the container has one: its output is one stream
	// DetachKeys replace the engine's own, which a program could not read.
	DetachKeys string
}

// Attach attaches to a container. It ends with ctx: the client itself does not
// once it has sent its request, and is then left to an engine that does not
// respond.
func (e *Engine) Attach(ctx context.Context, id string, opts AttachOptions) (*Stream, error) {
	type response struct {
		conn types.HijackedResponse
		err  error
	}
	responded := make(chan response)
	go func() {
		conn, err := e.cli.ContainerAttach(context.WithoutCancel(ctx), id, container.AttachOptions{
			Stream: true, Stdin: opts.Stdin, Stdout: true, Stderr: true, DetachKeys: opts.DetachKeys})
		select {
		case responded <- response{conn, err}:
		case <-ctx.Done():
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case r := <-responded:
		if r.err != nil {
			return nil, r.err
		}
		return &Stream{opts.TTY, r.conn}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CopyTo copies the container's output until it ends. With a TTY, stdout gets
// all of it.
func (s *Stream) CopyTo(stdout, stderr io.Writer) error {
	var err error
	if s.tty {
		_, err = io.Copy(stdout, s.conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, s.conn.Reader)
	}
	return err
}

// Discard reads the rest of the output: an engine whose stream is not read does
// not report a container's end.
func (s *Stream) Discard() { _, _ = io.Copy(io.Discard, s.conn.Reader) }

// Write writes to the container's standard input.
func (s *Stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

// CloseWrite ends the container's standard input.
func (s *Stream) CloseWrite() error { return s.conn.CloseWrite() }

// Close closes the connection.
func (s *Stream) Close() { s.conn.Close() }

// Logs returns the first limit bytes of what a container without a TTY has
// written to its standard output, in the engine's framing.
func (e *Engine) Logs(ctx context.Context, id string, limit int64) (string, error) {
	logs, err := e.cli.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return "", fmt.Errorf("read the container's output: %w", err)
	}
	defer logs.Close()
	var out, other bytes.Buffer
	bounded := &io.LimitedReader{R: bufio.NewReader(logs), N: limit}
	if _, err := stdcopy.StdCopy(&out, &other, bounded); err != nil && bounded.N > 0 {
		return "", fmt.Errorf("read the container's output: %w", err)
	}
	return out.String(), nil
}

// Resize sets the size of a container's terminal.
func (e *Engine) Resize(ctx context.Context, id string, height, width uint) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.cli.ContainerResize(ctx, id, container.ResizeOptions{Height: height, Width: width})
}

// MakesBeside reports whether a container that refers to another's network is made, and asked about, while that one
// starts. Podman holds the lock of a container that it starts.
func (e *Engine) MakesBeside() bool { return e.dialect.makesBeside() }

// SizesCreated reports whether Resize has an effect before the container has
// been started. Where it has not, the terminal's program may be there only a
// moment after the start.
func (e *Engine) SizesCreated() bool { return e.dialect.sizesCreated() }

// Tail keeps the end of a program's output.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write adds to the output.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

// LastError is the last line that reports an error, without the form of a log.
func (t *Tail) LastError() string {
	t.mu.Lock()
	lines := strings.Split(string(t.text), "\n")
	t.mu.Unlock()
	for _, line := range slices.Backward(lines) {
		line = strings.Join(strings.Fields(line), " ")
		_, level, logged := strings.Cut(line, " level=")
		switch {
		case strings.Contains(line, "healthcheck"): // Podman looks for systemd with each container
			continue
		case line == "", logged && !strings.HasPrefix(level, "error") && !strings.HasPrefix(level, "fatal"):
			continue
		}
		if _, quoted, ok := strings.Cut(level, " msg="); ok {
			if prefix, err := strconv.QuotedPrefix(quoted); err == nil {
				if message, err := strconv.Unquote(prefix); err == nil {
					return message
				}
			}
		}
		return line
	}
	return ""
}

// String is the end of the output, in one line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}

// ResizeCreated sets the size of the terminal of a container that has been
// created, but not started, and returns once the terminal has it: Podman hands
// the size to the container's monitor, which may apply it after the start. The container is held then. It
// waits for callTime at most, and not at all where the terminal cannot be seen
// from here: an engine of another machine or another namespace of processes, or
// a host without cgroups. It does nothing where [Engine.SizesCreated] is false.
func (e *Engine) ResizeCreated(ctx context.Context, c *Container, height, width uint) error {
	if !e.SizesCreated() {
		return nil
	}
	if err := e.Resize(ctx, c.ID, height, width); err != nil {
		return err
	}
	s, err := e.Inspect(ctx, c.ID)
	if err != nil || s.PID < 1 {
		return err
	}
	if err := c.hold(s.PID); err != nil || !c.Held() {
		return nil // it cannot be seen
	}
	// Its first process is the runtime's until the start: nothing of the image
	// has run.
	tty, err := unix.Open(fmt.Sprintf("/proc/%d/fd/0", s.PID),
		unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it cannot be seen
	}
	defer func() { _ = unix.Close(tty) }()
	if c.Ended() { // Asked after the terminal was opened: until then the number cannot have changed hands.
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		size, err := unix.IoctlGetWinsize(tty, unix.TIOCGWINSZ)
		if err != nil || uint(size.Row) == height && uint(size.Col) == width {
			return nil // it is no terminal
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("set the size of the terminal: it has %d rows and %d columns, want %d and %d: %w",
				size.Row, size.Col, height, width, ctx.Err())
		}
	}
}
