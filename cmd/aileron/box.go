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
	defer b.engine.Close()
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
	engine  *sandbox.Engine
	session *session.Session
	home    string // the session's
	conf    config.Config
	limits  sandbox.Limits
	ward    *warden

	terminal  *wardTerminal      // nil: the command has none
	exhausted sandbox.Exhaustion // what the box ran out of
}

// prepare finds the engine, has the image made, and opens the session and its
// warden. It leaves nothing behind when it fails.
func (b *boxRun) prepare(ctx context.Context) (err error) {
	if b.engine, err = b.app.findEngine(ctx, b.opts.sandbox); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if b.session != nil {
			b.session.Abandon(context.WithoutCancel(ctx))
		}
		b.engine.Close()
		if b.stop.Requested() {
			err = session.ErrStopped
		}
	}()
	if b.plan.image, err = b.engine.EnsureImage(ctx, b.plan.image, b.opts.build, b.app.stderr); err != nil {
		return err
	}
	if b.home, err = b.app.Home(); err != nil {
		return err
	}
	b.session, b.conf, err = b.app.openSession(ctx, sessionPlan{agent: b.plan.agent, mode: b.engine.Kind(), opts: &b.opts.sessionOptions, stop: b.stop})
	if err != nil {
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
	b.ward, err = startWarden(b.binary, b.home, b.engine, b.session.ID(), b.terminal)
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
	if _, err := b.engine.Sweep(ctx, func(id string) bool { return id == s.ID() || session.Alive(b.home, id) }); err != nil {
		b.app.logger().Warn("leftovers of ended sessions could not be removed", "error", err)
	}
	if err := door.listen(ctx, s, b.engine, sockets); err != nil {
		return 1, err
	}
	box, err := b.box(ctx, door, sockets)
	if err != nil {
		return 1, err
	}
	if b.limits, err = b.app.boxLimits(ctx, b.engine, b.conf.Sandbox); err != nil {
		return 1, err
	}
	box.Limits, box.Unenforced, box.Exhausted = b.limits, b.sayUnenforced, func(e sandbox.Exhaustion) { b.exhausted = e }
	return b.engine.Run(ctx, box)
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

// box is the box behind a door.
func (b *boxRun) box(ctx context.Context, door door, sockets string) (sandbox.Box, error) {
	var files []sandbox.File
	if door.kind != unmediated {
		var err error
		if files, err = b.app.boxFiles(ctx, b.session, b.engine, b.plan.image); err != nil {
			return sandbox.Box{}, err
		}
	}
	return sandbox.Box{
		Session: b.session.ID(), Image: b.plan.image, Command: b.plan.command, Needs: b.plan.needs, Dir: b.dir, Hide: b.hide,
		Env:      append(boxEnv(b.session, b.engine.Kind(), b.plan.image, door), b.plan.env...),
		AppendTo: []string{"JAVA_TOOL_OPTIONS"},
		ReadOnly: b.opts.fixed, Unsealed: door.kind != sealed,
		SocketDir: sockets, Binary: b.binary, Files: files,
		Stdin: b.app.stdin, Stdout: b.app.child.stdout, Stderr: b.app.child.stderr,
		TTY: b.hasTerminal(), Terminal: b.noteTerminal,
		Signals: b.signals.forward, Starting: b.signals.started, Began: func() { b.began = true },
	}, nil
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
