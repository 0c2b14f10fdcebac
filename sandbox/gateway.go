package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/carrier"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// gatewayRef is the image of every gateway: an empty place for a file and a
// directory. It is not the sandbox's, because an image may bring its own program
// to where ours is mounted (a link and a VOLUME), its environment, its health
// check, and the gateway starts with rights that the sandbox never has.
const gatewayRef = "localhost/aileron/gateway:1"

// gatewayImage returns the id of the gateway's image, which it makes where it is
// missing. It needs no registry and a few milliseconds.
func (e *Engine) gatewayImage(ctx context.Context) (_ string, err error) {
	e.gateway.Lock()
	defer e.gateway.Unlock()
	if e.gatewayID == "" {
		e.gatewayID, err = carrier.EnsureImage(ctx, e.Engine, gatewayRef, runtime.GOARCH, nil)
	}
	return e.gatewayID, err
}

// startGateway starts the gateway and waits until it is ready. When it runs, and is held, it calls runs.
func (e *Engine) startGateway(ctx context.Context, gateway *engine.Container, runs func()) error {
	output := &engine.Tail{}
	err := e.Await(ctx, "start the gateway", func(ctx context.Context) error {
		return e.awaitReady(ctx, gateway, output, runs)
	})
	if waited := (*engine.WaitError)(nil); errors.As(err, &waited) {
		waited.Last = cmp.Or(output.LastError(), waited.Last)
	}
	return err
}

// awaitReady starts the gateway and reads its output until it is ready. It
// attaches before the start: an engine that is asked for a log looks only now
// and then whether there is more of it.
func (e *Engine) awaitReady(
	ctx context.Context, gateway *engine.Container, output *engine.Tail, runs func(),
) error {
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
	if e.Hold(ctx, gateway) && gateway.Held() {
		runs()
	}
	pr, pw := io.Pipe()
	go func() { _ = pw.CloseWithError(errors.Join(stream.CopyTo(pw, output), io.EOF)) }()
	defer pr.Close()
	lines := bufio.NewScanner(pr)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "ready" {
			if gateway.Ended() || !gateway.Held() && !e.Hold(ctx, gateway) {
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
