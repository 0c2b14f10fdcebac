package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// startGateway starts the gateway and waits until it is ready.
func (e *Engine) startGateway(ctx context.Context, gateway *engine.Container) error {
	output := &engine.Tail{}
	err := e.Await(ctx, "start the gateway", func(ctx context.Context) error { return e.awaitReady(ctx, gateway, output) })
	if waited := (*engine.WaitError)(nil); errors.As(err, &waited) {
		waited.Last = cmp.Or(output.LastError(), waited.Last)
	}
	return err
}

// awaitReady starts the gateway and reads its output until it is ready. It
// attaches before the start: an engine that is asked for a log looks only now
// and then whether there is more of it.
func (e *Engine) awaitReady(ctx context.Context, gateway *engine.Container, output *engine.Tail) error {
	stream, err := e.Attach(ctx, gateway.ID, engine.AttachOptions{})
	if err != nil {
		// Podman makes the process here; only the error of its start has the cause.
		if startErr := e.Start(ctx, gateway.ID); startErr != nil {
			err = startErr
		}
		return fmt.Errorf("start the gateway: %w", err)
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, stream.Close) // ends what is read below
	defer stop()
	if err := e.Start(ctx, gateway.ID); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	pr, pw := io.Pipe()
	go func() { _ = pw.CloseWithError(errors.Join(stream.CopyTo(pw, output), io.EOF)) }()
	defer pr.Close()
	lines := bufio.NewScanner(pr)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "ready" {
			if !e.Hold(ctx, gateway) {
				return errors.New("start the gateway: it ended as soon as it was ready")
			}
			return nil
		}
		_, _ = output.Write(lines.Bytes())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start the gateway: %w", ctx.Err())
	}
	return fmt.Errorf("start the gateway: it did not get ready: %s", output)
}
