package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Sandbox describes a command in a sandbox.
type Sandbox struct {
	Agent   string        // names the command in the audit log
	Engine  string        // podman, docker, native, or auto for the first engine that responds
	Image   sandbox.Image // that holds the command
	Build   string        // when the image is built: auto, always or never
	Command []string
	Needs   []string // further commands that the image must have
	Prelude string   // runs before the command, as in sandbox.Spec
	// Composed is what the project's devcontainer asks for; nil is nothing. Setup is the script of its commands, which
	// runs before Prelude, and Advice what to do if the image has not what the command needs.
	Composed *sandbox.Composition
	Setup    string
	Advice   string
	// Layer is put on an image that lacks the command; nil is none.
	Layer *sandbox.Layer
	// Searched are variables that went into what is composed. One with a bound secret is refused, as those of Variables.
	Searched []string
	NotesAt  string // where the command looks for notes on its sandbox; "" is nowhere
	Keep     bool   // the state of the command outlives the sandbox, at sandbox.StateDir
	// Unattended reports whether the command is told not to ask. The sandbox must be sealed.
	Unattended bool
	Env        []string // variables of the command
	Dir        string   // the project directory; "" is the current one
	// ReadOnly keeps the command from changing the image's files.
	ReadOnly bool
	// Proxy is on to refuse a sandbox that cannot be sealed, auto to mediate it by convention, off for no mediation.
	Proxy string
	// Protect keeps the command from changing those files of the project that the host would run. The hooks of git are
	// always protected.
	Protect bool
	// Variables are those that the user passes, as K=V: see [CheckVariable]. One with a bound secret is refused.
	Variables []string
	// Ports are published on the loopback address of this host. The sandbox must be sealed.
	Ports []Port
	// Mounts are what the command sees of this host besides the project: see [ParseMount].
	Mounts []engine.Mount
	// Opened is called with the session before the sandbox is created. Nil is nothing.
	Opened func(*session.Session)
	// Began is called when the command has begun. Nil is nothing.
	Began func(*session.Session)
}

// Sandboxed runs a command in a sandbox with a session of its own, from preparation to removal. The error is an
// [ExitError] with the command's exit code if that is not 0.
func (l *Launcher) Sandboxed(ctx context.Context, s Sandbox) error {
	b := &sandboxed{Launcher: l, Sandbox: s, stop: session.NewStopRequest()}
	var err error
	if b.dir, b.mask, err = Project(s.Dir, l.Home); err != nil {
		return err
	}
	if b.binary, err = ownBinary(); err != nil {
		return err
	}
	if b.ports, err = openPorts(s.Ports); err != nil {
		return err
	}
	defer b.ports.close()
	ctx, b.signals = receiveSignals(ctx)
	defer b.signals.stop()
	live, cancel := b.stop.WithStop(ctx)
	defer cancel()
	defer func() { b.terminal.close() }()
	b.mounts = slices.Clone(s.Mounts)
	if err := b.useHostPrograms(); err != nil {
		return err
	}
	if err := b.fitMounts(); err != nil {
		return err
	}
	b.linkRepository(live)
	b.host = watchHostFiles(live, b.dir, b.gitDirs...)
	b.git = b.beginGitFacts(live)
	if err := b.prepare(live); err != nil {
		return l.interrupted(ctx, err)
	}
	defer b.prepared.Close()
	code, err := b.run(live)
	return b.end(ctx, code, err)
}

// sandboxed is one command in a sandbox: prepared, run and ended, in this order and once.
type sandboxed struct {
	*Launcher
	Sandbox
	dir      string         // the project
	mounts   []engine.Mount // what it sees besides
	gitDirs  []string       // directories of git among them
	layout   gitlayout.Layout
	gitNotes []string        // of layout, for people
	covered  []sandbox.Cover // places of the project that its mounts keep
	ports    *ports
	mask     []string // directories of it that the sandbox does not see
	binary   string   // aileron's own file
	signals  *signals
	stop     *session.StopRequest
	host     *hostWatch
	git      func() gitFacts // waits for what the host's git says
	settings projectSettings // of its clients; known before the command starts
	began    time.Time       // when the command did; zero: it did not

	// From prepare on:
	prepared *sandbox.Prepared
	// withoutEngine reports whether the sandbox is native because no engine is installed.
	withoutEngine bool
	session       *session.Session
	shared        share // what the sandbox has of this host
	reaper        *reaper
	// described waits for what its connectors and actions are in the sandbox.
	described func() described
	tree      sandbox.Tree // of their files; known when the image is
	etc       sandbox.Tree // of what is in /etc/aileron; likewise
	live      live

	terminal  *sharedTerminal   // nil: the command has none
	exhausted engine.Exhaustion // what the sandbox ran out of
	unclosed  error             // of closing the session
}

// prepare prepares the sandbox, and opens the session and its reaper. It leaves nothing behind when it fails.
func (b *sandboxed) prepare(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			return
		}
		if b.session != nil {
			b.session.Abandon(context.WithoutCancel(ctx))
		}
		if b.prepared != nil {
			b.prepared.Close()
		}
		if b.stop.Requested() {
			err = session.ErrStopped
		}
	}()
	if err := b.open(ctx); err != nil {
		return err
	}
	surface := b.session.Surface()
	set := setOf(surface)
	if err := set.Conflict(b.Command[0]); err != nil {
		return err
	}
	b.described = b.beginDescription(surface, set)
	if err := b.checkVariables(); err != nil {
		return err
	}
	if err := b.share(); err != nil {
		return err
	}
	if b.Opened != nil {
		b.Opened(b.session)
	}
	if b.Detached != nil {
		err := b.Detached.Open(detached.Session{
			Home: b.Home, ID: b.session.ID(), Dir: b.session.Dir(), Agent: b.Agent, Redact: b.session.Redacted,
			Alive: func(id string) bool { return session.Alive(b.Home, id) },
		})
		if err != nil {
			return err
		}
	} else if tty, ok := b.Stdout.(*os.File); ok && b.hasTerminal() {
		if b.terminal, err = shareTerminal(tty); err != nil {
			return err
		}
	}
	b.reaper, err = startSandboxReaper(b.binary, b.Home, b.prepared, b.session.ID(), b.terminal)
	return err
}

// open prepares the sandbox, and opens the session while the engine is found.
func (b *sandboxed) open(ctx context.Context) (err error) {
	begun := sandbox.Begin(ctx, b.spec())
	if b.session, err = b.Open(ctx, b.Agent, b.Engine, b.stop); err != nil {
		if notFound := begun.Close(); notFound != nil { // without an engine nothing else matters
			return b.offerNative(notFound)
		}
		return err
	}
	if b.prepared, err = begun.Prepare(ctx); err != nil {
		return b.offerNative(err)
	}
	return b.session.NoteMode(b.prepared.Kind())
}

// run serves the session where the sandbox reaches it, and runs the command in the sandbox.
func (b *sandboxed) run(ctx context.Context) (int, error) {
	s := b.session
	sockets, err := makeSocketDir(s)
	if err != nil {
		return 1, err
	}
	m, err := b.chooseMediation(ctx)
	if err != nil {
		return 1, err
	}
	if m.kind != sealed && len(b.Ports) > 0 {
		return 1, hint.New(errors.New("publish a port: this sandbox is not sealed, and has no gateway that could carry it"),
			"leave out --port, or use an engine on this host")
	}
	if m.kind != sealed && b.Unattended {
		return 1, hint.New(fmt.Errorf("let %s run unattended: this sandbox is not sealed", b.Agent),
			"--unattended=false lets it ask; or use an engine on this host")
	}
	s.NoteSandbox(session.Sandbox{
		Image: b.prepared.Image.Ref, ImageID: b.prepared.Image.ID(), EngineVersion: b.prepared.Version(),
		Network: b.Proxy, ReadOnly: b.ReadOnly, Protect: b.Protect, Keep: b.Keep,
		Unattended: b.Unattended,
	})
	if err := s.Serve(ctx, m.kind == sealed); err != nil {
		return 1, err
	}
	s.Sweep(ctx)
	if err := m.listen(ctx, s, b.prepared.Engine, sockets); err != nil {
		return 1, err
	}
	if err := b.prepared.PlaceProject(ctx); err != nil {
		return 1, err
	}
	if why := b.prepared.Displaced; why != "" {
		b.Infof("aileron: the project is at %s alone, and not at %s: %s", sandbox.Workspace, b.dir, why)
	}
	if err := b.reportMetadata(ctx); err != nil {
		return 1, err
	}
	b.reportGit(b.git())
	b.reportSettings(m)
	b.ports.record, b.ports.report = s.RecordPort, b.Infof
	if err := b.ports.serve(ctx, sockets); err != nil {
		return 1, err
	}
	defer b.ports.close() // before the session: each connection is in the log
	for _, p := range b.Ports {
		b.Infof("aileron: 127.0.0.1:%d is port %d of the sandbox", p.Host, p.Sandbox)
	}
	b.Infof("aileron: the sandbox may use %v ([sandbox] memory, cpus in config.toml)", b.prepared.Limits)
	return b.prepared.Run(ctx, b.uplink(ctx, m, sockets))
}

// makeSocketDir creates the directory that the gateway sees.
func makeSocketDir(s *session.Session) (string, error) {
	dir := filepath.Join(s.Dir(), "box")
	// Whatever the umask: the gateway's user is another one.
	if err := errors.Join(os.Mkdir(dir, 0o711), os.Chmod(dir, 0o711)); err != nil { //nolint:gosec // only to be entered
		return "", fmt.Errorf("create the sandbox's socket directory: %w", err)
	}
	return dir, nil
}

// spec returns what is to be prepared.
func (b *sandboxed) spec() sandbox.Spec {
	s := sandbox.Spec{
		Engine: b.Engine, Patience: b.Patience,
		Image: b.Image, Build: b.Build, Progress: b.Progress, Layer: b.Layer,
		Command: b.Command, Needs: b.Needs, Prelude: b.Setup + b.Prelude, Composed: b.Composed,
		Proxy: b.Proxy, Dir: b.dir, Mask: b.mask, Mounts: b.mounts, ReadOnly: b.ReadOnly,
		Limit: b.limit, Cache: filepath.Join(b.Home, "cache", "images"),
		Alive: func(id string) bool { return session.Alive(b.Home, id) },
		Log:   b.Log,
	}
	s.Image.Build.Before = b.beforeBuild
	if b.Keep {
		s.State = sandbox.State{Home: b.Home, Project: b.dir, Program: b.Agent}
	}
	s.Carrier = func(arch string) (string, error) { return binaryFor(b.binary, arch) }
	if b.Proxy != "off" {
		s.UplinkRoot = filepath.Join(b.Home, "sessions")
	}
	return s
}

// uplink returns how the sandbox reaches the session's proxy, and its command the person.
func (b *sandboxed) uplink(ctx context.Context, m mediation, sockets string) sandbox.Uplink {
	env, appendTo := b.settings.with(slices.Concat(b.Env, b.Variables))
	u := sandbox.Uplink{
		Session: b.session.ID(), Sockets: sockets, Binary: b.binary,
		Env: append(m.environment(b.session, b.prepared.Kind(), b.prepared.Image, b.Unattended),
			env...),
		Defaults: []string{"LANG=C.UTF-8", "GIT_CONFIG_SYSTEM=" + gitConfigFile},
		AppendTo: append(appendTo, trust.JavaVariable),
		Stdin:    b.Stdin, Stdout: b.Stdout, Stderr: b.Stderr,
		TTY: b.hasTerminal(), Terminal: b.noteTerminal,
		Signals: b.signals.forward, Starting: b.signals.started, Began: b.noteBegan,
		Exposing: b.host.wait, Ended: func() { b.host.ended(ctx) },
		Cut:        func() { go b.session.Drain(context.WithoutCancel(ctx)) },
		Unenforced: b.warnUnenforced, Exhausted: func(e engine.Exhaustion) { b.exhausted = e },
	}
	if b.prepared.IsNative() {
		u.Starting = func() { b.Infof("%s", nativeNotice); b.signals.started() }
	}
	if b.Detached != nil {
		u.Stdin, u.Stdout, u.Stderr, u.TTY = b.Detached, b.Detached, b.Detached, true
		u.Window, u.Resized = b.Detached.First(), b.Detached.Resized()
	}
	b.addZone(&u, hostZone(os.Getenv("TZ"), "/"))
	facts := b.git()
	u.Defaults = append(u.Defaults, gitVariables(facts, m.proxyURL)...)
	var hosts []string
	if m.kind != unmediated { // with a network, SSH is as good
		hosts = gitHosts(b.session.Connectors())
	}
	settings := gitFile(facts.name, facts.email, insteadOfSSH(facts.own, hosts))
	if len(b.layout.Others) > 0 {
		settings = keepReflogs(settings)
	}
	u.Files = append(append(u.Files, settings, httpsFile(facts.own, hosts)), b.worktreeLinks()...)
	if b.prepared.Sealed { // another engine may not see the copies
		u.Protect = func(to string) ([]sandbox.Cover, error) { return b.host.cover(to, b.Protect, b.covered) }
	}
	if m.kind != unmediated {
		var ofAileron []sandbox.File
		ofAileron, u.Files = belowAileronDir(u.Files)
		u.Trees, u.Live = b.trees, b.noteTrees
		u.Path = []string{laterDir}
		u.Trust = func(image *sandbox.ImageFS) (files []sandbox.File, env []string, err error) {
			described, err := b.descriptions(image)
			if err != nil {
				return nil, nil, err
			}
			files, javaInPlace, err := trustFiles(image, b.prepared.Image, b.session.RootPEM(), described, b.Log)
			b.etc.Files, files = inAileronDir(append(files, ofAileron...))
			if !javaInPlace {
				env = []string{trust.JavaVariable + "=" + m.clients().JavaOptions()}
			}
			return files, env, err
		}
	}
	return u
}

// trees returns the directories that the sandbox reads, and that follow the grants.
func (b *sandboxed) trees() []sandbox.Tree {
	if len(b.etc.Files) == 0 {
		return []sandbox.Tree{b.tree}
	}
	b.etc.Target, b.etc.OnDisk = aileronDir, true
	isTools := func(f sandbox.File) bool { return f.Path == path.Base(toolsFile) }
	b.live.etcFiles = slices.DeleteFunc(slices.Clone(b.etc.Files), isTools)
	return []sandbox.Tree{b.tree, b.etc}
}

// noteBegan notes that the command has begun.
func (b *sandboxed) noteBegan() {
	b.began = time.Now()
	b.shared.Mounted = true
	if err := b.recordShare(); err != nil {
		b.Log.Warn("other sessions take this one for one that is starting", "error", err)
	}
	if b.Began != nil {
		b.Began(b.session)
	}
}

// noteTerminal shares with the reaper how to restore the terminal.
func (b *sandboxed) noteTerminal(state terminal.State) {
	if b.terminal != nil {
		b.terminal.note(state)
	}
}

// signals are those that aileron gets while it has a sandbox. Until the command runs they interrupt the preparation;
// then they are the command's.
type signals struct {
	received  chan os.Signal
	forward   chan os.Signal // the command's
	running   chan struct{}  // closed when the command is about to start
	interrupt context.CancelFunc
}

// receiveSignals receives signals until stop. The context ends with the first one that comes before the command runs.
func receiveSignals(ctx context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(ctx)
	s := &signals{received: make(chan os.Signal, 8), forward: make(chan os.Signal, 8), running: make(chan struct{}),
		interrupt: cancel}
	signal.Notify(s.received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go s.sort(ctx)
	return ctx, s
}

func (s *signals) sort(ctx context.Context) {
	for {
		select {
		case sig := <-s.received:
			select {
			case <-s.running:
				select {
				case s.forward <- sig:
				case <-ctx.Done():
					return
				}
			default:
				s.interrupt()
			}
		case <-ctx.Done():
			return
		}
	}
}

// started passes signals to the command from now on.
func (s *signals) started() { close(s.running) }

// stop ends the reception: signals have their default effect again.
func (s *signals) stop() {
	signal.Stop(s.received)
	s.interrupt()
}
