package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// startGateway starts the gateway and waits until it is ready.
func (e *Engine) startGateway(ctx context.Context, gateway *part) error {
	said := &tail{}
	err := e.pulse.await(ctx, "start the gateway", func(ctx context.Context) error { return e.awaitReady(ctx, gateway, said) })
	if waited := (*WaitError)(nil); errors.As(err, &waited) {
		waited.Last = cmp.Or(said.last(), waited.Last)
	}
	return err
}

// awaitReady starts the gateway and reads its output until it says that it is
// ready. It attaches before the start: an engine that is asked for a log looks
// only now and then whether there is more of it.
func (e *Engine) awaitReady(ctx context.Context, gateway *part, said *tail) error {
	attach, err := e.attach(ctx, gateway.id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		// Podman makes the process here; only its start tells what is wrong.
		if startErr := e.cli.ContainerStart(ctx, gateway.id, container.StartOptions{}); startErr != nil {
			err = startErr
		}
		return fmt.Errorf("start the gateway: %w", err)
	}
	defer attach.Close()
	stop := context.AfterFunc(ctx, attach.Close) // ends what is read below
	defer stop()
	if err := e.cli.ContainerStart(ctx, gateway.id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	pr, pw := io.Pipe()
	go func() {
		_, err := stdcopy.StdCopy(pw, said, attach.Reader)
		_ = pw.CloseWithError(errors.Join(err, io.EOF))
	}()
	defer pr.Close()
	lines := bufio.NewScanner(pr)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "ready" {
			if !e.hold(ctx, gateway) {
				return errors.New("start the gateway: it ended as soon as it was ready")
			}
			return nil
		}
		_, _ = said.Write(lines.Bytes())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start the gateway: %w", ctx.Err())
	}
	return fmt.Errorf("start the gateway: it did not get ready: %s", said)
}

// sockets are the two ends of a box's line, in Box.SocketDir.
var sockets = []string{"proxy.sock", "redirect.sock"}

// line watches over the sockets of a box. Who removes them cuts the line, and
// nobody inside the box could tell why.
type line struct {
	*time.Ticker
	paths []string
	files []os.FileInfo
}

// watchLine starts to watch; where there are no sockets it has nothing to
// watch.
func watchLine(dir string) (*line, error) {
	l := &line{}
	for _, name := range sockets {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("watch the box's line: %w", err)
		}
		l.paths, l.files = append(l.paths, path), append(l.files, info)
	}
	l.Ticker = time.NewTicker(time.Second)
	return l, nil
}

// cut names a socket that is not there any more, or not the same; "" when all
// are.
func (l *line) cut() string {
	for i, path := range l.paths {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, l.files[i]) {
			return path
		}
	}
	return ""
}
