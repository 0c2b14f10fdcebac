package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/spec"
)

// boxOptions are the flags of the verbs that run something in a box.
type boxOptions struct {
	sessionOptions
	sandbox string
	build   string
	image   string
	dir     string
	proxy   string // auto, on or off
	fixed   bool   // the root file system is read-only
}

func (o *boxOptions) register(cmd *cobra.Command, sandboxes string) {
	o.sessionOptions.register(cmd)
	o.registerBox(cmd, sandboxes)
	f := cmd.Flags()
	f.StringVar(&o.proxy, "sandbox-proxy", "auto", "mediation: on (sealed, or not at all), auto (by convention where the engine cannot seal) or off (none)")
	f.BoolVar(&o.fixed, "read-only", false, "let the command write to the project, its home, /tmp, /var/tmp and /run only")
}

// registerBox adds what is said of a box without a session.
func (o *boxOptions) registerBox(cmd *cobra.Command, sandboxes string) {
	f := cmd.Flags()
	f.StringVar(&o.sandbox, "sandbox", "auto", "the engine that runs the box: "+sandboxes)
	f.StringVar(&o.build, "sandbox-build", "auto", "when to build the image: auto (when it is missing), always or never")
	f.StringVar(&o.image, "image", "", "run this image instead of aileron's own")
	f.StringVar(&o.dir, "dir", "", "project directory, at "+sandbox.Workspace+" in the box (default: the current one)")
}

func (o *boxOptions) check(off bool) error {
	if err := o.sessionOptions.check(); err != nil {
		return err
	}
	if err := oneOf("sandbox-proxy", o.proxy, "auto", "on", "off"); err != nil {
		return err
	}
	if err := o.checkBox(off); err != nil {
		return err
	}
	if o.sandbox == "off" && (o.proxy != "auto" || o.fixed) {
		return usagef("--sandbox-proxy and --read-only are about a box, and --sandbox=off makes none")
	}
	return nil
}

func (o *boxOptions) checkBox(off bool) error {
	engines := knownEngines()
	switch {
	case off:
		engines = append(engines, "off")
	case o.sandbox == "off":
		return usagef("--sandbox is off; use aileron run -- CMD for a command without a box")
	}
	if err := oneOf("sandbox", o.sandbox, engines...); err != nil {
		return err
	}
	return oneOf("sandbox-build", o.build, "auto", "always", "never")
}

// knownEngines are the values of --sandbox with which a box is made.
func knownEngines() []string { return []string{"auto", "podman", "docker"} }

// project is the absolute project directory, and what of it the box must not
// see: it may write to a project, and aileron's own home decides what it may
// do. A home inside a project is hidden.
func (a *app) project(o *boxOptions) (dir string, hide []string, err error) {
	dir, err = filepath.Abs(first(o.dir, "."))
	if err != nil {
		return "", nil, hint(fmt.Errorf("find the project directory: %w", err), "this directory was removed; go into one that exists, or name one with --dir")
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, hint(fmt.Errorf("use the project directory: %w", err), "--dir names a directory that exists")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", nil, hint(fmt.Errorf("use the project directory: %s is not a directory", dir), "--dir names a directory that exists")
	}
	home, err := a.Home()
	if err != nil {
		return "", nil, err
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	inside := dir == home
	for _, part := range []string{"actions", "sessions", "store", "trust", "vault"} {
		inside = inside || sandbox.Within(dir, filepath.Join(home, part))
	}
	switch {
	case inside:
		return "", nil, hint(fmt.Errorf("use the project directory %s: it is aileron's own home %s, which a box must not have", dir, home), "go into a project's directory, or name one with --dir")
	case sandbox.Within(home, dir):
		return dir, []string{home}, nil
	}
	return dir, nil, nil
}

// boxPlan is a command for a box, and the image that holds it.
type boxPlan struct {
	agent   string
	image   sandbox.Image
	command []string
	needs   []string       // commands that the image must have besides
	env     []string       // the agent's own variables
	opened  func(*session) // called before the box is made; nil: nothing to say
	stdin   io.Reader      // nil: the app's
	stdout  io.Writer      // nil: the app's
	stderr  io.Writer      // nil: the app's
}

// runInBox runs a command in a sealed box with a session of its own, and ends
// with its exit code.
func (a *app) runInBox(ctx context.Context, opts *boxOptions, plan boxPlan) error {
	dir, hide, err := a.project(opts)
	if err != nil {
		return err
	}
	binary, err := staticBinary()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Until the box runs, a signal ends the preparation.
	running := make(chan struct{})
	forward := make(chan os.Signal, 8)
	go func() {
		for {
			select {
			case sig := <-signals:
				select {
				case <-running:
					forward <- sig
				default:
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()

	engine, err := sandbox.Find(ctx, opts.sandbox)
	if err != nil {
		return a.interrupted(ctx, err)
	}
	defer engine.Close()
	if plan.image, err = engine.EnsureImage(ctx, plan.image, opts.build, a.stderr); err != nil {
		return a.interrupted(ctx, err)
	}
	s, err := a.openSession(ctx, sessionPlan{agent: plan.agent, mode: engine.Kind(), opts: &opts.sessionOptions})
	if err != nil {
		return a.interrupted(ctx, err)
	}
	if err := spec.ToolConflict(s.grants.connectors, plan.command[0]); err != nil {
		s.close(context.WithoutCancel(ctx), 1, "failed to start")
		return hint(err, "remove one of them with: aileron connector remove FQN")
	}
	if plan.opened != nil {
		plan.opened(s)
	}
	ward, err := startWarden(binary, s.home, engine, s.id)
	if err != nil {
		s.close(context.WithoutCancel(ctx), 1, "failed to start")
		return err
	}
	code, err := a.boxed(ctx, s, engine, boxed{plan: plan, opts: opts, dir: dir, hide: hide, binary: binary, forward: forward, running: running})
	if errors.Is(err, sandbox.ErrInterrupted) {
		cancel()
	}
	var bad *sandbox.CommandError
	var lacks *sandbox.ImageError
	if errors.As(err, &lacks) {
		err = hint(err, "add it to the image, or choose another with --image; aileron sandbox check --agent=CMD looks without a session")
	}
	if errors.As(err, new(*sandbox.ProjectError)) {
		err = hint(err, "go into a project's directory, or name one with --dir")
	}
	var untrusted *untrustedError
	var foreign *sandbox.ArchitectureError
	if errors.As(err, &bad) || lacks != nil || errors.As(err, &untrusted) || errors.As(err, &foreign) {
		s.disabled(context.WithoutCancel(ctx), reasonPreflight, oneLine(err))
	}
	if s.wasAsked() && errors.Is(err, context.Canceled) {
		err = nil // the command's own end, and its code
	}
	s.close(context.WithoutCancel(ctx), code, s.causeOf(ctx, err))
	left := errors.Is(err, sandbox.ErrLeft)
	ward.dismiss(left)
	switch {
	case errors.As(err, &bad):
		_ = a.exitCode(err) // says it; the code is a shell's
		return exitError{bad.Code}
	case left:
		return hint(err, "start %s again: the next session, or aileron sandbox prune, removes what is left", engine.Kind())
	case err != nil:
		return a.interrupted(ctx, err)
	case code != 0:
		return exitError{code}
	}
	return nil
}

// causeOf says in session.ended why a box ended.
func (s *session) causeOf(ctx context.Context, err error) string {
	switch {
	case err == nil && s.wasAsked():
		return "asked to stop"
	case ctx.Err() != nil:
		return "interrupted"
	case err != nil && !errors.Is(err, context.Canceled):
		return oneLine(err)
	}
	return "the command ended"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Reasons of sandbox.proxy.disabled.
const (
	reasonPreflight = "preflight_failed"
	reasonOptOut    = "user_opt_out"
	reasonUnsealed  = "unsupported_sandbox_mode"
)

// disabled writes down that no box is mediated, and why.
func (s *session) disabled(ctx context.Context, reason, cause string) {
	if _, err := s.audit.Append(ctx, audit.Row{Event: audit.EventSandboxDisabled, SessionID: s.id, Source: audit.SourceLauncher,
		Decision: audit.DecisionDisabled, Reason: reason, Fields: map[string]any{"cause": cause, "agent": s.agent, "mode": s.mode}}); err != nil {
		s.log.Warn("an audit row could not be written", "event", audit.EventSandboxDisabled, "error", err)
	}
}

// interruptedCode is the exit code of what a Ctrl-C ended: 128 and SIGINT.
const interruptedCode = 130

// interrupted says an error that a Ctrl-C caused as that.
func (a *app) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		a.sayf("aileron: interrupted")
		return exitError{interruptedCode}
	}
	return err
}

type boxed struct {
	plan    boxPlan
	opts    *boxOptions
	dir     string
	hide    []string // what of dir the box does not see
	binary  string
	forward <-chan os.Signal
	running chan struct{}
}

func (a *app) boxed(ctx context.Context, s *session, engine *sandbox.Engine, b boxed) (int, error) {
	sockets := filepath.Join(s.dir, "box")
	// Whatever the umask: the gateway's user is not ours.
	if err := errors.Join(os.Mkdir(sockets, 0o711), os.Chmod(sockets, 0o711)); err != nil { //nolint:gosec // only to be entered
		return 1, fmt.Errorf("make the box's socket directory: %w", err)
	}
	door, err := a.openDoor(ctx, s, engine, b)
	if err != nil {
		return 1, err
	}
	if err := s.serve(ctx, door.kind == sealed); err != nil {
		return 1, err
	}
	s.sweepSessions(ctx)
	if _, err := engine.Sweep(ctx, func(id string) bool { return id == s.id || alive(s.home, id) }); err != nil {
		s.log.Warn("leftovers of ended sessions could not be removed", "error", err)
	}
	if err := door.listen(ctx, s, engine, sockets); err != nil {
		return 1, err
	}
	var files []sandbox.File
	if door.kind != unmediated {
		if files, err = s.boxFiles(ctx, engine, b.plan.image); err != nil {
			return 1, err
		}
	}
	box := sandbox.Box{
		Session: s.id, Image: b.plan.image, Command: b.plan.command, Needs: b.plan.needs, Dir: b.dir, Hide: b.hide,
		Env:      append(s.boxEnv(engine.Kind(), b.plan.image, door), b.plan.env...),
		Behind:   []string{"JAVA_TOOL_OPTIONS"},
		ReadOnly: b.opts.fixed, Unsealed: door.kind != sealed,
		SocketDir: sockets, Binary: b.binary, Files: files,
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Signals: b.forward, Starting: func() { close(b.running) },
	}
	if b.plan.stdin != nil {
		box.Stdin = b.plan.stdin
	}
	if b.plan.stdout != nil {
		box.Stdout, box.Stderr = b.plan.stdout, b.plan.stderr
	}
	box.TTY = isTerminal(box.Stdin) && isTerminal(box.Stdout)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	return engine.Run(ctx, box)
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
func (s *session) boxEnv(runtime string, image sandbox.Image, d door) []string {
	env := []string{"AILERON_SESSION_ID=" + s.id, "AILERON_SANDBOX_TIER=" + tierOf(image), "AILERON_SANDBOX_RUNTIME=" + runtime, "AILERON_SANDBOX_IMAGE=" + image.Ref}
	if d.kind == unmediated {
		return env
	}
	env = append(env, mediationEnv(d.proxyURL, boxCA, boxBundle, boxJava, []string{"localhost", "127.0.0.1", "::1", d.apiHost})...)
	env = append(env, "AILERON_API_URL="+d.apiURL, "AILERON_TOKEN="+s.token,
		"AILERON_TOOLS_FILE=/etc/aileron/tools.txt", "AILERON_SHIMS_DIR=/usr/local/bin")
	return append(env, s.placeholders()...)
}

// staticBinary is this program's own file, which the gateway container runs:
// it must need nothing from an image.
func staticBinary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", hint(fmt.Errorf("read aileron's own file: %w", err), "boxes need a Linux build of aileron")
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", hint(errors.New("use aileron as the gateway: this build is not static"), "build it with CGO_ENABLED=0 (just build)")
		}
	}
	return path, nil
}
