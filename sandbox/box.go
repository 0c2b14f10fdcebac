package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/sandbox/carrier"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// box is one run of a sandbox: what it is, and its way to the proxy.
type box struct {
	Spec
	Uplink
	Limits   engine.Limits
	Place    string         // of the project, besides Workspace; "" is none
	Unsealed bool           // it has the engine's own network instead of a gateway
	carry    *carried       // nil: its gateway sees the uplink's sockets themselves
	mounts   string         // the directory of the files that are mounted into it
	trees    []Tree         // of the uplink
	treesDir string         // where they are on this host, unless it is mounts
	mounted  []engine.Mount // they, as mounts; nil: they are not there yet
	covers   []Cover
	grace    time.Duration // 0: stopGrace
}

// ProjectError is returned when a project, or a mount, has what no sandbox may see.
type ProjectError struct {
	Dir, Holds string
	Mount      bool
}

// ErrorClass and ErrorReason are for --json.
func (*ProjectError) ErrorClass() string  { return "invalid_request" }
func (*ProjectError) ErrorReason() string { return "project_not_allowed" }

func (e *ProjectError) Error() string {
	if e.Mount {
		return fmt.Sprintf("mount %s: it holds %s, which a sandbox must not have", e.Dir, e.Holds)
	}
	return fmt.Sprintf("use the project directory %s: it holds %s, which a sandbox must not have", e.Dir, e.Holds)
}

// name is that of one of its containers.
func (b box) name(role string) string { return namePrefix + b.Session + "-" + role }

// argv is what its first process runs: the command, behind its prelude.
func (b box) argv() []string {
	if b.Prelude == "" {
		return b.Command
	}
	return append([]string{"sh", "-c", b.Prelude + "\nexec \"$@\"", "sh"}, b.Command...)
}

// run is [Prepared.Run], with all files known.
func (e *Engine) run(ctx context.Context, b box) (code int, err error) {
	defer func() {
		if !errors.Is(err, engine.ErrLeft) {
			engine.Unwrap(&err)
		}
	}()
	// Not the session's directory: a sandbox can read where its mounts come from,
	// and the path of the vault is not for the agent.
	filesIn, profileIn := "", b.Sockets
	if b.carry != nil {
		filesIn = b.carry.files
	}
	if b.mounts, err = engine.MakeDirIn(filesIn); err != nil {
		return 1, fmt.Errorf("make a directory for the sandbox's files: %w", err)
	}
	defer os.RemoveAll(b.mounts)
	if b.carry != nil {
		profileIn = b.mounts
	}
	seccomp, err := e.Seccomp(profileIn, seccompProfile)
	if err != nil {
		return 1, err
	}
	if err := forbiddenMount(b, e.Sockets()); err != nil {
		return 1, err
	}
	if b.Protect != nil {
		if b.covers, err = b.Protect(filepath.Join(b.mounts, "protected")); err != nil {
			return 1, err
		}
		if err := checkHeld(b.covers); err != nil {
			return 1, err
		}
	}
	if b.Image, _, err = e.pin(ctx, b.Image); err != nil {
		return 1, err
	}
	files := e.beginFiles(ctx, b)
	defer func() {
		if b, _ := files(); b.treesDir != "" {
			_ = os.RemoveAll(b.treesDir)
		}
	}()
	var made containers
	defer func() {
		for _, t := range made.trees {
			t.End()
		}
	}()
	removed := sync.OnceValue(func() error {
		made.carrier.Close()
		return errors.Join(e.RemoveAll(ctx, made.all()), made.carrier.RemoveVolume(ctx))
	})
	defer func() { err = e.endRun(ctx, made, removed, err) }()
	if code, err := e.makeContainers(ctx, b, files, seccomp, &made); err != nil {
		return code, err
	}
	return e.runBox(ctx, b, made, func() {
		go removed() //nolint:errcheck // endRun has its error
		if b.Cut != nil {
			b.Cut()
		}
	})
}

// beginFiles begins to add to b the files that are not known before, and to put them where they are mounted from, which
// many commands make take a while: the engine makes the gateway's container meanwhile. What is returned waits for that.
// The directory of the trees, if it was made, is in b even with an error.
func (e *Engine) beginFiles(ctx context.Context, b box) func() (box, error) {
	done := make(chan error, 1)
	go func() {
		err := b.addFiles(func() (*ImageFS, error) { return e.OpenImage(ctx, b.Image) })
		if err == nil {
			b.treesDir = b.makeTreesDir()
			err = forbiddenMount(b, e.Sockets())
		}
		if err == nil {
			b.mounted, err = mountTrees(b)
		}
		done <- err
	}()
	return sync.OnceValues(func() (box, error) {
		err := <-done
		return b, err
	})
}

// containers are those of a run, as far as they were made.
type containers struct {
	carrier *carrier.Carrier  // nil: there is none
	gateway *engine.Container // nil: there is none
	command *engine.Container
	trees   []*LiveTree // of the command

	ready func() error    // waits until the gateway is ready; nil: it is not being started
	runs  <-chan struct{} // closed when the gateway runs and is held, is ready or has failed; nil as ready
}

// all returns the containers in the order in which they were made.
func (c containers) all() (all []*engine.Container) {
	if c.carrier != nil {
		all = append(all, c.carrier.Container)
	}
	for _, one := range []*engine.Container{c.gateway, c.command} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// makeContainers makes the containers of a run, begins to start the gateway, and makes
// or at least fills the command's container meanwhile. When it returns, the gateway is ready, or
// runs and is held. One whose creation failed is in made too, by its name: a call
// that was given up may still be done. The code is that of fill.
func (e *Engine) makeContainers(
	ctx context.Context, b box, files func() (box, error), seccomp string, made *containers,
) (code int, err error) {
	if b.carry != nil {
		if b.carry.image, err = carrier.Image(ctx, e.Engine, b.carry.binary, b.carry.arch); err != nil {
			return 1, err
		}
		if made.carrier, err = carrier.Start(ctx, e.Engine, b.carrierConfig(seccomp)); err != nil {
			return 1, err
		}
	}
	if !b.Unsealed {
		id, err := e.createGateway(ctx, b, seccomp)
		made.gateway = &engine.Container{ID: cmp.Or(id, b.name("gw"))}
		if err != nil {
			return 1, err
		}
		if e.MakesBeside() {
			e.beginGateway(ctx, made)
		}
	}
	defer func() {
		if err != nil && made.ready != nil { // the gateway may be the reason, and is not removed while it starts
			if gatewayErr := made.ready(); gatewayErr != nil {
				code, err = 1, gatewayErr
			}
		}
	}()
	if b, err = files(); err != nil {
		return 1, err
	}
	// It has the gateway's network only from its own start on.
	created, err := e.createBox(ctx, b, made.gateway, seccomp)
	made.command = &engine.Container{ID: cmp.Or(created.id, b.name("box"))}
	if err != nil {
		return 1, err
	}
	made.trees = created.trees
	if b.Live != nil && len(made.trees) > 0 {
		b.Live(made.trees)
	}
	state, err := e.inspectMade(ctx, created.id) // before Podman starts the gateway, see MakesBeside
	if err != nil {
		return 1, err
	}
	if !b.Unsealed && made.ready == nil {
		e.beginGateway(ctx, made)
	}
	if code, err = e.fill(ctx, b, created, state); err == nil && made.runs != nil {
		<-made.runs
	}
	return code, err
}

// beginGateway begins to start the gateway.
func (e *Engine) beginGateway(ctx context.Context, made *containers) {
	runs, started := make(chan struct{}), make(chan error, 1)
	gateway := made.gateway
	go func() {
		run := sync.OnceFunc(func() { close(runs) })
		defer run()
		started <- e.startGateway(ctx, gateway, run)
	}()
	made.runs, made.ready = runs, sync.OnceValue(func() error { return <-started })
}

// fill checks that the image can run the command, and puts the session's files
// into the container. The code is what a shell would exit with.
func (e *Engine) fill(ctx context.Context, b box, made createdBox, state engine.State) (code int, err error) {
	if err := e.own(ctx, b, &made); err != nil {
		return 1, err
	}
	report, err := e.preflight(ctx, b, made.id, state)
	if len(report.Missing) > 0 {
		return 1, &ImageError{Image: b.Image.Ref, Missing: report.Missing}
	}
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if err != nil || b.ReadOnly { // a root that is read-only has the files mounted
		return 1, err
	}
	files, err := e.userFiles(ctx, b.Image, report.User)
	if err == nil {
		err = e.put(ctx, made.id, report.layer, append(files, b.Files...), made.home...)
	}
	return 1, err
}

// endRun waits until the containers of a run that ended with err are removed, and
// returns the error of both.
func (e *Engine) endRun(ctx context.Context, made containers, removed func() error, err error) error {
	engine.Unwrap(&err)
	waited := errors.Is(err, engine.ErrInterrupted) || errors.As(err, new(*engine.WaitError))
	if err != nil && ctx.Err() == nil && !waited {
		if why := e.WentAway(); why != "" {
			err = fmt.Errorf("run the sandbox: %s, and without it the sandbox cannot go on", why)
		}
	}
	left := removed()
	if err != nil || left != nil { // an engine that was killed may not have recorded what it had started
		var ids []string
		for _, c := range made.all() {
			ids = append(ids, c.ID)
		}
		e.EndRemains(ids)
	}
	switch {
	case left == nil:
		return err
	case err == nil:
		return left
	}
	return fmt.Errorf("%w; %w", err, left) // in one line
}
