package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
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

// SizesCreated reports whether Resize has an effect before the container has
// been started. Where it has not, the terminal's program may be there only a
// moment after the start.
func (e *Engine) SizesCreated() bool { return e.dialect.sizesCreated() }
