package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

// Patience is how long an engine is waited for. A call to it has no time-out
// while the engine shows that it lives: it answers a ping, its process gets
// processor time, or bytes of the response arrive. The zero value has the
// defaults.
type Patience struct {
	// Limit bounds one call to an engine that lives; 0 is DefaultLimit. The
	// build of an image has none.
	Limit time.Duration
	// Silent bounds the time without a sign of life; 0 is one minute.
	Silent time.Duration
	// Report, when set, is called each second for a wait that has taken more
	// than two seconds, and once at its end.
	Report func(Wait)
}

// DefaultLimit is the default of Patience.Limit.
const DefaultLimit = 2 * time.Minute

const (
	defaultSilent = time.Minute

	// noticeAfter is when a wait is reported for the first time.
	noticeAfter = 2 * time.Second
	// stoppedTime is how long the engine's process may be stopped (SIGSTOP).
	stoppedTime = 10 * time.Second
	// lostTime replaces Patience.Silent once an engine has been given up, until
	// it answers again: what follows is the removal of a run's containers.
	lostTime = callTime
)

func (p Patience) limit() time.Duration  { return cmp.Or(p.Limit, DefaultLimit) }
func (p Patience) silent() time.Duration { return cmp.Or(p.Silent, defaultSilent) }

// Wait is a wait for an engine that takes longer than usual.
type Wait struct {
	Engine string        // podman or docker
	Step   string        // what the engine is to do: "make a container"
	For    time.Duration // until now
	Over   bool          // the last report of this wait
}

// WaitError is returned when an engine is not waited for any longer.
type WaitError struct {
	Engine string
	Step   string // what the engine was to do
	Waited time.Duration
	Why    string // why it was given up
	Last   string // the last error of the engine; "" for none
	Lives  bool   // the engine responds, and exceeded Patience.Limit

	remedy string
}

// ErrorClass and ErrorReason are for --json.
func (*WaitError) ErrorClass() string  { return "unavailable" }
func (*WaitError) ErrorReason() string { return "engine_not_responding" }

// Hint returns what can be done about the engine, see [hint.Of].
func (e *WaitError) Hint() string { return e.remedy }

// Is reports that a WaitError is an ErrEngine.
func (*WaitError) Is(target error) bool { return target == ErrEngine }

func (e *WaitError) Error() string {
	what := e.Engine + " does not respond"
	if e.Lives {
		what = e.Engine + " responds, but makes no progress"
	}
	text := fmt.Sprintf("%s: waited %v for it to %s, and %s", what, e.Waited.Round(time.Second), e.Step, e.Why)
	if e.Last != "" {
		text += "; its last error: " + e.Last
	}
	return text
}

// dial makes a client for the engine behind an address, each of whose calls is
// waited for as long as the engine lives.
func dial(kind, host string, patience Patience) (*client.Client, *liveness, error) {
	plain, err := client.NewClientWithOpts(client.WithHost(host))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	hc := plain.HTTPClient()
	p := newLiveness(kind, host, patience, plain)
	hc.Transport = patient{hc.Transport, p}
	cli, err := client.NewClientWithOpts(
		client.WithHost(host), client.WithHTTPClient(hc), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	return cli, p, nil
}

// patient is a transport with the engine's Patience in place of a time-out.
type patient struct {
	http.RoundTripper
	p *liveness
}

// RoundTrip sends a request, and watches over the engine until the response
// has been read.
func (t patient) RoundTrip(req *http.Request) (*http.Response, error) {
	step, endless := stepOf(req.Method, req.URL.Path)
	if endless {
		return t.RoundTripper.RoundTrip(req)
	}
	limit := t.p.patience.limit()
	building := step == stepBuild
	if building {
		limit = 0
	}
	ctx, giveUp := context.WithCancelCause(req.Context())
	w := t.p.watch(ctx, step, limit, giveUp)
	res, err := t.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err != nil {
		w.end()
		if given := givenUp(ctx); given != nil {
			err = unworded{given}
		}
		giveUp(nil)
		return nil, err
	}
	w.quiet.Store(building) // the output of a build is shown
	end := sync.OnceFunc(func() { w.end(); giveUp(nil) })
	res.Body = &watchedBody{ReadCloser: res.Body, w: w, ctx: ctx, end: end}
	return res, nil
}

// watchedBody is the body of a response whose bytes are signs of life.
type watchedBody struct {
	io.ReadCloser
	w   *watchdog
	ctx context.Context //nolint:containedctx // the request's, to know why a read failed
	end func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.w.moved.Add(int64(n))
	if err != nil {
		if given := givenUp(b.ctx); given != nil && err != io.EOF {
			err = unworded{given}
		}
		b.end()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// unworded is a WaitError on its way through the client, which replaces errors
// by their words.
type unworded struct{ error }

func (unworded) Error() string   { return "the engine was given up" }
func (u unworded) Unwrap() error { return u.error }

// stepBuild is the step of an image's build.
const stepBuild = "build an image"

// stepOf is what a request asks an engine to do, in words, and whether its
// response takes as long as a command in a container.
func stepOf(method, at string) (step string, endless bool) {
	name := path.Base(at)
	archive := map[string]string{
		http.MethodGet: "read files of a container", http.MethodHead: "look for a file in a container",
		http.MethodPut: "put files into a container",
	}
	switch {
	case name == "wait" || name == "attach":
		return "", true
	case name == "build":
		return stepBuild, false
	case name == "archive":
		return archive[method], false
	case method == http.MethodDelete:
		return "remove a container", false
	case strings.Contains(at, "/images/"):
		if method == http.MethodGet {
			return "look at an image", false
		}
		return "make an image", false
	}
	words := map[string]string{
		"_ping": "respond", "version": "report its version", "info": "describe itself", "create": "make a container",
		"start": "start a container", "kill": "signal a container", "unpause": "resume a container",
		"resize": "resize a terminal", "logs": "read a container's output",
	}
	if word, ok := words[name]; ok {
		return word, false
	}
	if name == "json" && path.Base(path.Dir(at)) == "containers" {
		return "list its containers", false
	}
	if strings.Contains(at, "/networks/") {
		return "look at its network", false
	}
	return "look at a container", false
}
