package carrier

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Config is the container of a carrier.
type Config struct {
	Name, Volume         string // of the container, and of the volume of its sockets
	Labels, VolumeLabels map[string]string
	Image, Seccomp       string
	Sockets              string // the session's directory of sockets, on this host
}

// Dir is where a carrier, and its gateway, have the volume.
const Dir = "/run/aileron"

// user is the one of a carrier, and the one that a gateway becomes.
const user = 65532

// argument makes a program a carrier.
const argument = "carry-sockets"

// IsCarrier reports whether this process was started as one.
func IsCarrier() bool { return len(os.Args) == 2 && os.Args[1] == argument }

// Main is a carrier's process.
func Main() {
	if err := Run(context.Background(), Dir, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Carrier is one that runs in an engine.
type Carrier struct {
	Container *engine.Container
	volume    string
	e         *engine.Engine
	stream    *engine.Stream
	said      *engine.Tail
	end       *End
}

// Start makes the container of a carrier and its volume, starts it, and waits until its sockets are there. What is
// returned is to be closed and removed even with an error.
func Start(ctx context.Context, e *engine.Engine, c Config) (_ *Carrier, err error) {
	r := &Carrier{Container: &engine.Container{ID: c.Name}, volume: c.Volume, e: e, said: &engine.Tail{}}
	if err := e.EnsureVolume(ctx, c.Volume, c.VolumeLabels); err != nil {
		return r, err
	}
	id, err := e.Create(ctx, engine.Config{
		Name: c.Name, Labels: c.Labels, Image: c.Image, Hostname: "carrier", Command: []string{"/aileron", argument},
		User: fmt.Sprintf("%[1]d:%[1]d", user), Dir: "/", Env: []string{"PATH=/"}, Network: "none", ReadOnly: true,
		Seccomp: c.Seccomp, Stdin: true, NoLog: true, Mounts: []engine.Mount{{Volume: c.Volume, Target: Dir}},
		Processes: 512, Memory: 512 << 20,
	})
	r.Container.ID = cmp.Or(id, c.Name)
	if err != nil {
		return r, fmt.Errorf("make the carrier: %w", err)
	}
	return r, e.Await(ctx, "start the carrier", func(ctx context.Context) error { return r.begin(ctx, c.Sockets) })
}

// begin attaches to the container, starts it, and waits until it is ready.
func (r *Carrier) begin(ctx context.Context, sockets string) (err error) {
	if r.stream, err = r.e.Attach(ctx, r.Container.ID, engine.AttachOptions{Stdin: true}); err != nil {
		return fmt.Errorf("attach to the carrier: %w", err)
	}
	pr, pw := io.Pipe()
	go func() { _ = pw.CloseWithError(errors.Join(r.stream.CopyTo(pw, r.said), io.EOF)) }()
	shut := func() {
		r.stream.Close()
		_ = pr.Close()
	}
	// It outlives the wait.
	r.end = Serve(context.WithoutCancel(ctx), bufio.NewReaderSize(pr, maxFrame), r.stream, shut, sockets)
	if err := r.e.Start(ctx, r.Container.ID); err != nil {
		return fmt.Errorf("start the carrier: %w", err)
	}
	select {
	case <-r.end.Ready():
		return nil
	case <-r.end.Ended():
		return fmt.Errorf("start the carrier: it did not get ready: %s", r.said)
	case <-ctx.Done():
		return fmt.Errorf("start the carrier: %w", ctx.Err())
	}
}

// Close ends the carrier, whose container ends with its standard input. A nil one is none.
func (r *Carrier) Close() {
	if r != nil && r.stream != nil {
		r.stream.Close()
	}
}

// RemoveVolume removes the volume of a carrier whose containers were removed, even after ctx has ended.
func (r *Carrier) RemoveVolume(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r.e.RemoveVolume(context.WithoutCancel(ctx), r.volume)
}

// Ended is closed when the carrier has ended, and nil for a nil one.
func (r *Carrier) Ended() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.end.Ended()
}

// End returns how the carrier ended, as the error of its sandbox.
func (r *Carrier) End(ctx context.Context) error {
	how := ""
	state, err := r.e.Inspect(ctx, r.Container.ID)
	for try := 0; try < 10 && err == nil && state.Running; try++ { // the stream may end first
		time.Sleep(50 * time.Millisecond)
		state, err = r.e.Inspect(ctx, r.Container.ID)
	}
	switch said := r.said.LastError(); {
	case engine.IsNotFound(err):
		how = " (its container was removed by another process)"
	case err == nil && state.OOMKilled:
		how = " (the kernel killed it for its memory)"
	case said != "":
		how = " (" + strings.TrimSpace(said) + ")"
	case err == nil && state.Running:
		how = " (its connection to the engine was lost)"
	}
	return fmt.Errorf("run the sandbox: its carrier, and with it the sandbox's only uplink, ended%s, "+
		"so the sandbox was ended too", how)
}
