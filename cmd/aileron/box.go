package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// boxPlan is a command for a box, and the image that holds it.
type boxPlan struct {
	agent   string
	image   sandbox.Image
	command []string
	needs   []string               // commands that the image must have besides
	env     []string               // the agent's own variables
	opened  func(*session.Session) // called before the box is made; nil: nothing to say
}

// runInBox runs a command in a sealed box with a session of its own, and ends
// with its exit code.
func (a *app) runInBox(ctx context.Context, opts *boxOptions, plan boxPlan) error {
	b := &boxRun{app: a, opts: opts, plan: plan, stop: session.NewStopRequest()}
	var err error
	if b.dir, b.hide, err = a.project(opts); err != nil {
		return err
	}
	if b.binary, err = staticBinary(); err != nil {
		return err
	}
	ctx, b.signals = receiveSignals(ctx)
	defer b.signals.stop()
	live, cancel := b.stop.WithStop(ctx)
	defer cancel()
	defer func() { b.terminal.close() }()
	if err := b.prepare(live); err != nil {
		return a.interrupted(ctx, err)
	}
	defer b.sandbox.Close()
	code, err := b.run(live)
	return b.end(ctx, code, err)
}

// boxRun is one command in a box: prepared, run and ended, in this order and
// once.
type boxRun struct {
	app     *app
	opts    *boxOptions
	plan    boxPlan
	dir     string   // the project
	hide    []string // what of dir the box does not see
	binary  string   // aileron's own file
	signals *boxSignals
	stop    *session.StopRequest
	began   bool // the command did

	// From prepare on:
	sandbox *sandbox.Prepared
	session *session.Session
	home    string // the session's
	ward    *warden

	terminal  *wardTerminal     // nil: the command has none
	exhausted engine.Exhaustion // what the box ran out of
}

// prepare prepares the sandbox, and opens the session and its warden. It leaves
// nothing behind when it fails.
func (b *boxRun) prepare(ctx context.Context) (err error) {
	if b.home, err = b.app.Home(); err != nil {
		return err
	}
	conf, err := config.Read(b.home)
	if err != nil {
		return err
	}
	if b.sandbox, err = sandbox.Prepare(ctx, b.spec(conf.Sandbox)); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if b.session != nil {
			b.session.Abandon(context.WithoutCancel(ctx))
		}
		b.sandbox.Close()
		if b.stop.Requested() {
			err = session.ErrStopped
		}
	}()
	plan := sessionPlan{agent: b.plan.agent, mode: b.sandbox.Engine.Kind(), opts: &b.opts.sessionOptions, stop: b.stop}
	if b.session, _, err = b.app.openSession(ctx, plan); err != nil {
		return err
	}
	if err := spec.ToolConflict(b.session.Connectors(), b.plan.command[0]); err != nil {
		return hint.New(err, "remove one of them with: aileron connector remove FQN")
	}
	if b.plan.opened != nil {
		b.plan.opened(b.session)
	}
	if tty, ok := b.app.child.stdout.(*os.File); ok && b.hasTerminal() {
		if b.terminal, err = newWardTerminal(tty); err != nil {
			return err
		}
	}
	b.ward, err = startWarden(b.binary, b.home, b.sandbox.Engine, b.session.ID(), b.terminal)
	return err
}

// run serves the session at the box's door, and runs the command in the box.
func (b *boxRun) run(ctx context.Context) (int, error) {
	s := b.session
	sockets, err := makeSocketDir(s)
	if err != nil {
		return 1, err
	}
	door, err := b.openDoor(ctx)
	if err != nil {
		return 1, err
	}
	if err := s.Serve(ctx, door.kind == sealed); err != nil {
		return 1, err
	}
	s.Sweep(ctx)
	if err := door.listen(ctx, s, b.sandbox.Engine, sockets); err != nil {
		return 1, err
	}
	b.app.infof("aileron: the box may use %v ([sandbox] memory, cpus in config.toml)", b.sandbox.Limits)
	return b.sandbox.Run(ctx, b.uplink(door, sockets))
}

// makeSocketDir makes the directory that the gateway sees.
func makeSocketDir(s *session.Session) (string, error) {
	dir := filepath.Join(s.Dir(), "box")
	// Whatever the umask: the gateway's user is not ours.
	if err := errors.Join(os.Mkdir(dir, 0o711), os.Chmod(dir, 0o711)); err != nil { //nolint:gosec // only to be entered
		return "", fmt.Errorf("make the box's socket directory: %w", err)
	}
	return dir, nil
}

// spec describes the sandbox.
func (b *boxRun) spec(conf config.Sandbox) sandbox.Spec {
	s := sandbox.Spec{
		Engine: b.opts.sandbox, Patience: b.app.patience(conf),
		Image: b.plan.image, Build: b.opts.build, Progress: b.app.stderr,
		Command: b.plan.command, Needs: b.plan.needs, Dir: b.dir, Mask: b.hide, ReadOnly: b.opts.fixed,
		Limit: func(machine engine.Limits) engine.Limits { return boxLimits(machine, conf) },
		Alive: func(id string) bool { return session.Alive(b.home, id) },
		Log:   b.app.logger(),
	}
	if b.opts.proxy != "off" {
		s.UplinkRoot = filepath.Join(b.home, "sessions")
	}
	return s
}

// uplink is the sandbox's way to the proxy, behind a door.
func (b *boxRun) uplink(door door, sockets string) sandbox.Uplink {
	u := sandbox.Uplink{
		Session: b.session.ID(), Sockets: sockets, Binary: b.binary,
		Env:      append(boxEnv(b.session, b.sandbox.Engine.Kind(), b.sandbox.Image, door), b.plan.env...),
		AppendTo: []string{"JAVA_TOOL_OPTIONS"},
		Stdin:    b.app.stdin, Stdout: b.app.child.stdout, Stderr: b.app.child.stderr,
		TTY: b.hasTerminal(), Terminal: b.noteTerminal,
		Signals: b.signals.forward, Starting: b.signals.started, Began: func() { b.began = true },
		Unenforced: b.sayUnenforced, Exhausted: func(e engine.Exhaustion) { b.exhausted = e },
	}
	if door.kind != unmediated {
		u.Trust = func(image *sandbox.ImageFS) ([]sandbox.File, error) {
			return trustFiles(image, b.sandbox.Image, b.session.RootPEM(), shims.ToolsFile(b.session.Connectors()), b.app.logger())
		}
	}
	return u
}

// hasTerminal reports whether the command in the box has the person's terminal.
func (b *boxRun) hasTerminal() bool {
	return isTerminal(b.app.stdin) && isTerminal(b.app.child.stdout)
}

// noteTerminal lets the warden know how to restore the terminal.
func (b *boxRun) noteTerminal(state sandbox.TerminalState) {
	if b.terminal != nil {
		b.terminal.note(state)
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// tierOf says whose an image is: aileron's own, or the user's.
func tierOf(image sandbox.Image) string {
	if image.Dockerfile == nil {
		return "byo"
	}
	return "base"
}

// boxEnv is the environment of CONTRACT section 3. A box that is not mediated
// is told what it is, and nothing else.
func boxEnv(s *session.Session, runtime string, image sandbox.Image, d door) []string {
	env := []string{"AILERON_SESSION_ID=" + s.ID(), "AILERON_SANDBOX_TIER=" + tierOf(image), "AILERON_SANDBOX_RUNTIME=" + runtime, "AILERON_SANDBOX_IMAGE=" + image.Ref}
	if d.kind == unmediated {
		return env
	}
	env = append(env, trust.Environment{
		Proxy: d.proxyURL, NoProxy: []string{"localhost", "127.0.0.1", "::1", d.apiHost},
		CA: trust.CAFile, Bundle: trust.BundleFile, JavaStore: trust.JavaStoreFile,
	}.Variables()...)
	env = append(env, "AILERON_API_URL="+d.apiURL, "AILERON_TOKEN="+s.Token(),
		"AILERON_TOOLS_FILE="+toolsFile, "AILERON_SHIMS_DIR=/usr/local/bin")
	return append(env, s.Placeholders()...)
}
