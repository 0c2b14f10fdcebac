package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// ErrInterrupted is returned when a signal ended a start with which the engine
// did not get on.
var ErrInterrupted = errors.New("start the sandbox: interrupted")

// Start starts a container.
func (e *Engine) Start(ctx context.Context, id string) error {
	return e.cli.ContainerStart(ctx, id, container.StartOptions{})
}

// StartInterruptible starts a container, and returns the signals that arrived
// meanwhile: its command has had none of them. An engine that does not get on
// within five seconds of the first, or until the second, is given up, and the
// error is [ErrInterrupted].
func (e *Engine) StartInterruptible(
	ctx context.Context, id string, signals <-chan os.Signal,
) (early []os.Signal, err error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	started := make(chan error, 1)
	go func() { started <- e.Start(ctx, id) }()
	var late <-chan time.Time
	for len(early) < 2 {
		select {
		case err := <-started:
			return early, err
		case sig := <-signals:
			early, late = append(early, sig), time.After(callTime)
			continue
		case <-late:
		}
		break
	}
	giveUp()
	if <-started == nil { // just now
		return early, nil
	}
	return nil, ErrInterrupted
}

// Exit is how a container ended.
type Exit struct {
	Code  int
	State *State // after the end; nil: the engine was not asked
}

// Wait returns how a container ends that has been started, or the error that kept
// the engine from reporting it.
func (e *Engine) Wait(ctx context.Context, c *Container) (<-chan Exit, <-chan error) {
	exited, fault := make(chan Exit, 1), make(chan error, 1)
	go func() {
		x, err := e.dialect.exit(ctx, e, c)
		if err != nil {
			fault <- err
			return
		}
		exited <- x
	}()
	return exited, fault
}

// State is what an engine reports of a container.
type State struct {
	User string   // of its configuration
	Env  []string // the image's, and that of its Config after it

	Running, Paused bool
	Exited          bool // its first process has ended with ExitCode; of one that is removed just now that is not known
	OOMKilled       bool // the kernel killed a process of it for its memory
	ExitCode        int
	PID             int // of its first process; 0: not known
	Finished        time.Time

	Layer Layer
}

// Inspect returns the state of a container. The error satisfies [IsNotFound]
// when there is no such container.
func (e *Engine) Inspect(ctx context.Context, id string) (State, error) {
	c, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return State{}, err
	}
	s := State{Running: true} // until the engine reports otherwise
	if c.Config != nil {
		s.User, s.Env = c.Config.User, c.Config.Env
	}
	if c.ContainerJSONBase != nil && c.State != nil {
		s.Running, s.Paused, s.OOMKilled = c.State.Running, c.State.Paused, c.State.OOMKilled
		s.ExitCode, s.PID = c.State.ExitCode, c.State.Pid
		s.Finished, _ = time.Parse(time.RFC3339Nano, c.State.FinishedAt) // of one that runs it is none, or an old one
		// Podman reports stopped until it has cleaned up behind the process.
		s.Exited = c.State.Status == "exited" || c.State.Status == "stopped"
	}
	if started, socket := e.Local(); socket {
		s.Layer = layerOf(c)
		s.Layer.own = started && os.Geteuid() == 0
	}
	return s, nil
}

// Presence is whether a container can still be asked for.
type Presence int

// The presences of a container.
const (
	Present     Presence = iota
	Removed              // by another process
	Unreachable          // its engine does not respond
)

// Presence waits for a moment for a container to be removed that was killed:
// engines report its end first.
func (e *Engine) Presence(ctx context.Context, id string) Presence {
	for range 10 {
		if p := e.presence(ctx, id); p != Present {
			return p
		}
		time.Sleep(50 * time.Millisecond)
	}
	return Present
}

func (e *Engine) presence(ctx context.Context, id string) Presence {
	_, err := e.cli.ContainerInspect(context.WithoutCancel(ctx), id)
	switch {
	case err == nil:
		return Present
	case IsNotFound(err), e.means(err, faultHalfGone):
		return Removed
	case client.IsErrConnectionFailed(err):
		return Unreachable
	}
	return Present // it responds, and may report more in a moment
}

// Listed is a container in a list.
type Listed struct {
	ID      string `json:"Id"`
	Labels  map[string]string
	Names   []string
	State   string
	Created time.Time
}

// Named reports whether a name of the container begins with prefix.
func (l Listed) Named(prefix string) bool {
	return slices.ContainsFunc(l.Names, func(name string) bool {
		return strings.HasPrefix(strings.TrimPrefix(name, "/"), prefix)
	})
}

// Filter selects containers.
type Filter struct {
	Label string // a label that they have
	// NamePrefix selects besides, where the engine keeps them, the files of
	// containers that have such a name and no record. They are recognised by the
	// label Role, which they lack, and by their age: files are made before the
	// record is written.
	NamePrefix  string
	Role        string
	OrphanGrace time.Duration
}

// List returns the containers that a filter selects, running or not.
func (e *Engine) List(ctx context.Context, f Filter) ([]Listed, error) {
	return e.dialect.list(ctx, e, f)
}

const (
	// removeTime bounds a removal by an engine that lives.
	removeTime = 2 * time.Minute
	// firstTime is when an engine that lives and has not removed its containers
	// is connected to anew: it may hang in a call, with the lock of a container.
	firstTime = 30 * time.Second
	// interruptTime is the same for a run that was interrupted.
	interruptTime = 15 * time.Second
	// callTime bounds a call on whose response nothing depends.
	callTime = 5 * time.Second
)

var (
	// ErrLeft is returned when containers could not be removed, because their
	// engine went away. Their processes were ended where this process could
	// reach them.
	ErrLeft = errors.New("what the engine still has of it could not be removed")
	// ErrRemoving is returned when another process already removes a container.
	ErrRemoving = errors.New("remove a container: its removal is already under way")
	// errEnding is in the error of a removal when the container ended meanwhile. It
	// is removed by the next one.
	errEnding = errors.New("it has just ended")
	// ErrDependents is in the error of a removal when another container shares
	// the network of the container.
	ErrDependents = errors.New("another container depends on it")
)

// RemoveOnce removes a container, running or not, with its volumes. There is no
// error when it is not there. The error is [ErrRemoving] when another process
// removes it already.
func (e *Engine) RemoveOnce(ctx context.Context, id string) error {
	err := e.removeOnce(ctx, id)
	for try := 1; errors.Is(err, errEnding) && try < endingTries && ctx.Err() == nil; try++ {
		time.Sleep(50 * time.Millisecond)
		err = e.removeOnce(ctx, id)
	}
	return err
}

// endingTries is how often a removal is tried of a container that has just ended.
const endingTries = 10

func (e *Engine) removeOnce(ctx context.Context, id string) error {
	err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	Unwrap(&err)
	switch {
	case err == nil, e.means(err, faultNotFound):
		return nil
	case e.means(err, faultRemoving):
		return ErrRemoving
	case e.means(err, faultEnding):
		return fmt.Errorf("remove a container: %w: %w", errEnding, err)
	case e.means(err, faultDependents):
		return fmt.Errorf("remove a container: %w: %w", ErrDependents, err)
	}
	return fmt.Errorf("remove a container: %w", err)
}

// Remove is RemoveOnce, and waits for an end or a removal that is under way.
func (e *Engine) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for {
		err := e.RemoveOnce(ctx, id)
		if !errors.Is(err, ErrRemoving) && !errors.Is(err, errEnding) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// RemoveAll removes containers, the last of them first, even after ctx has
// ended. Where the engine does not respond any more, it ends their processes
// itself, so that none keeps a network, and then asks the engine that is there
// now: our own Podman service is started anew. The error is [ErrLeft].
func (e *Engine) RemoveAll(ctx context.Context, containers []*Container) error {
	limit := firstTime
	if ctx.Err() != nil {
		limit = interruptTime
	}
	ctx = context.WithoutCancel(ctx)
	defer func() {
		for _, c := range containers {
			c.release()
		}
	}()
	for _, c := range containers { // a gateway ends while the command's container is removed
		c.process.signal(syscall.SIGKILL)
	}
	first, cancelFirst := context.WithTimeout(ctx, limit)
	defer cancelFirst()
	err := e.removeEach(first, containers)
	// A container whose creation was given up may be made after it was looked for.
	for errors.Is(err, ErrDependents) && first.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		err = e.removeEach(first, containers)
	}
	if err == nil {
		return nil
	}
	for _, c := range containers {
		c.process.kill(callTime)
	}
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	now, againErr := e.reconnect(ctx)
	Unwrap(&againErr)
	if againErr != nil {
		return fmt.Errorf("%w: %w", ErrLeft, againErr)
	}
	defer now.Close()
	if err := now.removeEach(ctx, containers); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// removeEach removes the last that was made first: a gateway cannot be removed
// before the container that shares its network.
func (e *Engine) removeEach(ctx context.Context, containers []*Container) error {
	var faults []error
	for i := len(containers) - 1; i >= 0; i-- {
		if err := e.Remove(ctx, containers[i].ID); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
