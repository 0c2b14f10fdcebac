// Package engine drives Podman and Docker through the Docker API. Call
// [Patience.Find] first; then the methods of [Engine] make, start, watch and
// remove containers, and look up, build and import images.
//
// Open engine.go for how an engine is found, container.go for what a container is
// asked to be, and lifecycle.go for its start, its end and its removal. Where the
// two engines differ is stated in one place: the interface in dialect.go, which
// podman.go and docker.go implement. No other file asks which engine it talks to.
// held.go has what the kernel shows of a container without its engine, and
// liveness.go decides how long an engine is waited for.
//
// No call has a time-out while the engine shows that it lives. One that shows no
// sign of life is given up, and the error is a [WaitError]; one that ended
// is a [GoneError]. The package knows nothing of sandboxes, sessions or
// proxies: what a container is asked for is its caller's decision, in a
// [Config].
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	// github.com/moby/moby/client is the successor of this module, which ends with
	// v28.5.2. It would do: it negotiates down to API 1.40, and Podman 4 and Docker
	// 20.10 have 1.41. But it is v0.6.2, whose minor versions may break its calls,
	// it needs the same modules, and nothing here asks for an API after 1.41. Move
	// when it is v1, or when this one needs a fix that only it gets; no package but
	// this one imports either.
	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Engine is Podman or Docker, behind the Docker API.
type Engine struct {
	dialect  dialect
	version  string
	cli      *client.Client
	liveness *liveness
	service  *podmanService // nil: the engine was running
	dir      string         // private files for this engine
	away     bool           // see RunsElsewhere

	mu   sync.Mutex
	info *About // nil: it was not asked
}

// Find returns the engine of a kind: podman, docker, or auto for the first of
// the two that responds. It has this patience as long as it is used. The error of
// an engine that is not there is a [FindError].
func (p Patience) Find(ctx context.Context, kind string) (*Engine, error) {
	SweepDirs()
	var causes []string
	for _, d := range dialects() {
		if kind != "auto" && kind != d.name() {
			continue
		}
		e, err := d.find(ctx, p)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		causes = append(causes, err.Error())
	}
	if len(causes) == 0 {
		return nil, fmt.Errorf("find an engine: %q is neither auto, podman nor docker", kind)
	}
	return nil, &FindError{causes}
}

// FindError is returned when there is no engine. It has the cause, and what to
// do about it, for each that was looked for.
type FindError struct{ causes []string }

// ErrorClass and ErrorReason are for --json.
func (*FindError) ErrorClass() string  { return "unavailable" }
func (*FindError) ErrorReason() string { return "engine_not_found" }

func (e *FindError) Error() string {
	return "find an engine: " + strings.Join(e.causes, "; ") + "; see docs/sandbox.md"
}

// Kind is podman or docker.
func (e *Engine) Kind() string { return e.dialect.name() }

// Version returns the engine's version.
func (e *Engine) Version() string { return e.version }

// Describe returns the engine's kind and version.
func (e *Engine) Describe() string { return e.Kind() + " " + e.version }

// Close releases the engine, and ends the service that Find started.
func (e *Engine) Close() {
	_ = errors.Join(e.cli.Close(), e.liveness.plain.Close())
	if e.service != nil {
		e.liveness.rest.begin()
		e.service.stop()
	}
	if e.dir != "" {
		_ = os.RemoveAll(e.dir)
	}
}

// connectNamed is connect for an address that a user has named.
func connectNamed(ctx context.Context, d dialect, host string, patience Patience) (*Engine, error) {
	if u, err := url.Parse(host); err != nil || u.Scheme != "unix" && u.Scheme != "tcp" && u.Scheme != "http" {
		return nil, fmt.Errorf("%s: %q is no unix:// or tcp:// address, and aileron speaks no other", d.name(), host)
	}
	return connect(ctx, d, host, patience)
}

func connect(ctx context.Context, d dialect, host string, patience Patience) (_ *Engine, err error) {
	cli, p, err := dial(d.name(), host, patience)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = errors.Join(cli.Close(), p.plain.Close())
		}
	}()
	cli.NegotiateAPIVersion(ctx)
	if d.name() == (podman{}).name() { // it takes long to report its version: see connectOwn
		if version, err := pingPodman(ctx, cli); err == nil {
			return &Engine{dialect: d, version: version, cli: cli, liveness: p}, nil
		}
	}
	v, err := cli.ServerVersion(ctx)
	if waited := (*WaitError)(nil); errors.As(err, &waited) {
		return nil, fmt.Errorf("%s: %w", host, waited)
	}
	if err != nil {
		if why := p.ping(ctx); why != nil { // the client's own words hide it
			err = rootCause(why)
		}
		return nil, fmt.Errorf("%s does not respond at %s: %w", d.name(), host, err)
	}
	var components []string
	for _, c := range v.Components {
		components = append(components, c.Name)
	}
	if !d.made(components) {
		return nil, fmt.Errorf("%s: another engine answers at %s", d.name(), host)
	}
	return &Engine{dialect: d, version: v.Version, cli: cli, liveness: p}, nil
}

// reconnect returns the engine as it is now: the one behind the same socket, or
// a Podman service of our own in place of one that died or hangs. A service
// that hangs may hold the lock of a container, and with it keep any other from
// removing it.
func (e *Engine) reconnect(ctx context.Context) (*Engine, error) {
	if e.service != nil {
		e.service.stop()
		return startService(ctx, e.liveness.patience)
	}
	return connect(ctx, e.dialect, e.cli.DaemonHost(), e.liveness.patience)
}

// Address is where the engine listens: unix://PATH, or tcp://HOST:PORT.
func (e *Engine) Address() string { return e.cli.DaemonHost() }

// Local reports whether this process has started the engine, or reaches it by
// a unix socket.
func (e *Engine) Local() (started, socket bool) {
	host, err := url.Parse(e.cli.DaemonHost())
	return e.service != nil, err == nil && host.Scheme == "unix"
}

// RunsElsewhere notes that the engine has another kernel than this host's, or sees other files: its containers have its
// own limits, and nothing of it is looked for on this host. It is called before containers are made.
func (e *Engine) RunsElsewhere() { e.away = true }

// IsElsewhere reports whether RunsElsewhere was called.
func (e *Engine) IsElsewhere() bool { return e.away }

// Sockets are the paths with which a process would control an engine of this
// machine, and the private directory of this one. Some may not exist.
func (e *Engine) Sockets() []string {
	return append(KnownSockets(), e.dir, strings.TrimPrefix(e.cli.DaemonHost(), "unix://"))
}

// KnownSockets are the paths of [Engine.Sockets] that are known without an
// engine: those that the environment names, and those where engines listen
// unless they are told otherwise.
func KnownSockets() []string {
	sockets := []string{"/run/podman/podman.sock", "/run/docker.sock", "/var/run/docker.sock",
		"/run/containerd/containerd.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		sockets = append(sockets, podmanUserSocket(), filepath.Join(dir, "docker.sock"))
	}
	sockets = append(sockets, machineSockets()...)
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST"} {
		at, ok := strings.CutPrefix(os.Getenv(name), "unix:")
		if abs, err := filepath.Abs(strings.TrimPrefix(at, "//")); ok && err == nil {
			sockets = append(sockets, abs)
		}
	}
	return sockets
}

// rootCause is the innermost error: those around it name the engine's address.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// ErrEngine is what the error of a call is when not its subject but the engine
// is at fault.
var ErrEngine = errors.New("the engine failed")

// GoneError is returned when the engine ended while it was needed.
type GoneError struct{ why string }

// ErrorClass and ErrorReason are for --json.
func (*GoneError) ErrorClass() string  { return "unavailable" }
func (*GoneError) ErrorReason() string { return "engine_not_responding" }

// Is reports that a GoneError is an ErrEngine.
func (*GoneError) Is(target error) bool { return target == ErrEngine }

func (e *GoneError) Error() string { return "prepare the sandbox: " + e.why }

// Explain replaces an error by a [GoneError] with a hint, or by a [WaitError], where the engine's
// end, or its silence, is its cause.
func (e *Engine) Explain(err *error) {
	Unwrap(err)
	if *err == nil || errors.Is(*err, context.Canceled) ||
		errors.As(*err, new(*WaitError)) || errors.As(*err, new(*GoneError)) {
		return
	}
	lost := client.IsErrConnectionFailed(*err) || errors.Is(*err, io.EOF) || errors.Is(*err, io.ErrUnexpectedEOF) ||
		errors.Is(*err, syscall.ECONNRESET) || errors.Is(*err, syscall.ECONNREFUSED) || errors.Is(*err, syscall.EPIPE)
	if !lost {
		return
	}
	if why := e.WentAway(); why != "" {
		remedy := "start " + e.Kind() + " again"
		if e.service != nil { // each run starts its own
			remedy = "run it again"
		}
		*err = hint.New(&GoneError{why}, "%s", remedy)
	}
}

// Unwrap replaces an error in which a wait was given up by the [WaitError],
// which is the whole message.
func Unwrap(err *error) {
	if waited := (*WaitError)(nil); errors.As(*err, &waited) {
		*err = waited
	}
}

// WentAway returns how the engine ended, for people; "" when it responds.
func (e *Engine) WentAway() string {
	if _, err := e.cli.Ping(context.Background()); !client.IsErrConnectionFailed(err) { // it ends with the engine
		return ""
	}
	if e.service != nil {
		select {
		case <-e.service.done:
			state := e.service.cmd.ProcessState
			how := "the service of podman that aileron had started was ended (" + state.String() + ")"
			if last := e.liveness.said(); last != "" && state.Exited() { // else a signal ended it
				how += ", its last error: " + last + ","
			}
			return how
		case <-time.After(time.Second): // a dead one is seen at once
		}
	}
	return e.Kind() + " does not respond on its socket any more"
}
