// Package sandbox runs a command in a sealed sandbox: a container that has no
// network but the loopback device, shared with a gateway that carries every
// connection to one unix socket of the host.
//
// [Prepare] finds an engine and makes the image ready, and [Prepared.Run] runs
// the command and returns its exit code:
//
//	p, err := sandbox.Prepare(ctx, sandbox.Spec{Engine: "auto", Image: image, Build: "auto", Dir: dir,
//		Command: []string{"sh"}, UplinkRoot: sockets, Alive: alive, Progress: os.Stderr, Log: log})
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	code, err := p.Run(ctx, sandbox.Uplink{Session: id, Sockets: sockets, Binary: aileron, Stdout: os.Stdout})
//
// [Prepared.Sealed] reports whether the sandbox can be sealed. One that cannot
// has the engine's own network, so its caller decides whether to run it.
//
// Open this file for what a sandbox is asked to be, box.go for the run of one from
// its creation to its removal, seal.go for its container, and running.go and
// watch.go for the time between: its streams, and all that may end it.
//
// The package decides what the containers of a sandbox are; package engine makes
// and watches them. It knows nothing of proxies: what listens on the sockets is
// the caller's. Run leaves no container behind unless the engine goes away, and
// [Engine.Sweep] finds by label what a killed process left.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/livetree"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// Workspace is where every sandbox has its project. Where its own path is one that a sandbox can have, it is there too,
// see [CheckPlace]: what git, compilers and package managers record are paths, and the host reads them.
const Workspace = "/home/agent/workspace"

// Labels by which Sweep finds containers.
const (
	labelSession = "aileron.session"
	labelRole    = "aileron.role"
	labelOwner   = "aileron.owner"

	// noSession is the session of a container in which an image's files are read.
	noSession = "none"
)

// Spec describes a sandbox: the command, its image and its project, and the
// engine that is to run it.
type Spec struct {
	Engine   string          // podman, docker, native, or auto for the first engine that responds
	Patience engine.Patience // for the engine

	Image    Image
	Build    string    // when the image is built: auto, always or never
	Progress io.Writer // gets the output of a build

	// Layer is put on an image that lacks a command of it; nil is none.
	Layer *Layer

	Command []string
	Needs   []string // commands that the image must have besides
	// Prelude is a shell script that runs before the command, in the same process
	// of the sandbox. Its positional parameters are the command and its arguments,
	// which it may change. It needs sh in Needs. "" is none.
	Prelude string
	State   State    // is at StateDir; without a program there is none
	Dir     string   // the project, without links
	Mask    []string // directories below Dir that are empty in the sandbox
	// Mounts are further files and directories of this host.
	Mounts []engine.Mount
	// ReadOnly keeps the command from changing the image's files: it may write
	// to the project, its home, /tmp, /var/tmp and /run.
	ReadOnly bool
	// Composed is what the project's devcontainer asks for; nil is nothing.
	Composed *Composition
	// Limit returns the limits of the sandbox on a machine; nil is no limit.
	Limit func(machine engine.Limits) engine.Limits

	// Proxy is off for a sandbox that is not mediated.
	Proxy string
	// UplinkRoot is a directory of this host that will have the sockets of the
	// [Uplink] somewhere below. "" is for a sandbox without an uplink, which is
	// not sealed.
	UplinkRoot string
	// Carrier returns a static aileron for Linux on an architecture, as Go names those. It is asked for where no socket
	// of this host reaches the engine.
	Carrier func(arch string) (path string, err error)
	// Cache is a directory in which what is known of images' files is kept; ""
	// is none.
	Cache string
	// Alive reports whether a session lives. The containers of others are
	// removed.
	Alive func(session string) bool
	// Log gets a warning about containers that could not be removed.
	Log *slog.Logger
}

// Prepared is a sandbox that can be run: on an engine, or natively without one.
type Prepared struct {
	Engine *Engine       // nil: it is native
	Image  Image         // its id is that of what will run
	Limits engine.Limits // what the command may use

	// Sealed reports whether the uplink is the only way out of the sandbox. Where
	// it is not, the sandbox has the engine's own network, and Unsealable is the
	// reason, for people; it is "" without an uplink.
	Sealed     bool
	Unsealable string

	// Carried is why no socket of this host reaches the engine, for people, where the sandbox is sealed all the same; ""
	// otherwise.
	Carried string

	// Place is the project's own path if the sandbox has it there too. Otherwise Displaced is the reason, for people.
	// PlaceProject sets them.
	Place, Displaced string

	spec   Spec
	carry  *carried       // nil: a socket of this host reaches the engine
	etc    []byte         // of a native sandbox: what it has of this host's /etc
	beside sync.WaitGroup // what Prepare has begun, and only Run needs
	close  sync.Once
}

// Prepare finds the engine, looks up or builds the image, removes what sessions
// that were killed have left, and finds out whether the sandbox can be sealed.
// What only Run needs goes on: the removal too. The caller closes what is returned.
func Prepare(ctx context.Context, s Spec) (*Prepared, error) { return Begin(ctx, s).Prepare(ctx) }

// Beginning is a sandbox whose engine is being found, which takes as long as the start of a container where Podman has
// no service. See [Begin].
type Beginning struct {
	spec  Spec
	found <-chan foundEngine     // receives once; nil: it is native
	stop  context.CancelFunc     // ends the search
	etc   func() ([]byte, error) // of a native sandbox: waits for what it has of this host's /etc
}

// foundEngine is the end of a search.
type foundEngine struct {
	*Engine
	err error
}

// Begin begins what [Prepare] does first, beside what the caller does meanwhile. The caller calls Prepare or Close.
func Begin(ctx context.Context, s Spec) *Beginning {
	if s.Engine == Native {
		var etc []byte
		var err error
		read := make(chan struct{})
		go func() { defer close(read); etc, err = native.HostEtc() }()
		return &Beginning{spec: s, etc: func() ([]byte, error) { <-read; return etc, err }}
	}
	ctx, stop := context.WithCancel(ctx)
	found := make(chan foundEngine, 1)
	go func() {
		e, err := Find(ctx, s.Engine, s.Patience)
		found <- foundEngine{e, err}
	}()
	return &Beginning{spec: s, found: found, stop: stop}
}

// closeTime bounds the wait of [Beginning.Close]. An engine that is not there is known at once.
const closeTime = 3 * time.Second

// Close ends the search for the engine, and releases the engine if it is found. The error is why there is none, where
// that is known in time.
func (b *Beginning) Close() error {
	if b.found == nil {
		return nil
	}
	defer b.stop()
	select {
	case r := <-b.found:
		return r.release()
	case <-time.After(closeTime):
		b.stop()
		_ = (<-b.found).release()
		return nil
	}
}

func (r foundEngine) release() error {
	if r.err == nil {
		r.Close()
	}
	return r.err
}

// Prepare does what is left of [Prepare].
func (b *Beginning) Prepare(ctx context.Context) (_ *Prepared, err error) {
	if b.found == nil {
		return prepareNative(b.spec, b.etc)
	}
	r := <-b.found
	if r.err != nil {
		b.stop()
		return nil, r.err
	}
	e, s := r.Engine, b.spec
	e.cache = s.Cache
	p := &Prepared{Engine: e, spec: s}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	// None of these waits for another.
	p.beside.Go(func() {
		if _, err := e.Sweep(ctx, s.Alive); err != nil {
			s.Log.Warn("leftovers of ended sessions could not be removed", "error", err)
		}
	})
	p.beside.Go(func() { _, _ = e.Host(ctx) }) // its next call has the error
	if p.Image, err = e.EnsureImage(ctx, s.Image, s.Build, s.Progress); err != nil {
		return nil, err
	}
	if s.Layer != nil {
		if p.Image, err = e.EnsureLayer(ctx, p.Image, *s.Layer, s.Build, s.Progress); err != nil {
			return nil, err
		}
	}
	p.beside.Go(func() { e.known(p.Image.id) })
	if s.UplinkRoot != "" {
		if err = p.seal(ctx); err != nil {
			return nil, err
		}
	}
	if p.Sealed && p.carry == nil {
		p.beside.Go(func() { _, _ = e.gatewayImage(ctx) }) // as above
	}
	if s.Limit != nil {
		machine, err := e.machine(ctx)
		if err != nil {
			return nil, err
		}
		p.Limits = s.Limit(machine)
	}
	return p, nil
}

// seal finds out how the sandbox is sealed, or why it cannot be.
func (p *Prepared) seal(ctx context.Context) (err error) {
	if p.Sealed, p.Unsealable, err = p.Engine.sealable(ctx, p.Image, p.spec.UplinkRoot); err != nil || p.Sealed {
		return err
	}
	if p.spec.Carrier == nil {
		return nil
	}
	if p.carry, p.Unsealable, err = p.Engine.carriable(ctx, p.spec, p.Image, p.Unsealable); p.carry != nil {
		p.Sealed, p.Carried = true, p.carry.why
	}
	return err
}

// Close releases the engine, once.
func (p *Prepared) Close() {
	p.close.Do(func() {
		p.beside.Wait()
		if p.Engine != nil {
			p.Engine.Close()
		}
	})
}

// IsNative reports whether the sandbox takes no engine.
func (p *Prepared) IsNative() bool { return p.Engine == nil }

// Kind returns what runs the sandbox: podman, docker or native.
func (p *Prepared) Kind() string {
	if p.IsNative() {
		return Native
	}
	return p.Engine.Kind()
}

// Version returns that of the engine, or "" without one.
func (p *Prepared) Version() string {
	if p.IsNative() {
		return ""
	}
	return p.Engine.Version()
}

// OpenImage returns the file system of the sandbox's image, or what it has of this host's. It must be closed.
func (p *Prepared) OpenImage(ctx context.Context) (*ImageFS, error) {
	if p.IsNative() {
		return p.openHost()
	}
	return p.Engine.OpenImage(ctx, p.Image)
}

// Uplink is how a sandbox reaches the proxy of its session, and how its command
// reaches the person who runs it.
type Uplink struct {
	Session string // names and labels the containers
	// Sockets is the directory of proxy.sock and redirect.sock, at which all that
	// a sealed sandbox sends ends. Only its gateway sees it.
	Sockets string
	Binary  string // a static aileron, for the gateway

	Env      []string // what the command needs to use the proxy
	Defaults []string // variables that the command gets unless the image sets them
	AppendTo []string // names of Env: ours is appended to the image's own value, after a space
	Path     []string // directories that are searched for commands after all others
	Files    []File   // put into the sandbox before its command starts
	// Trust, when set, returns more of Files and of Env: those by which the image's programs
	// trust the proxy. It is called while the gateway's container is made, and before
	// that of the command.
	Trust func(image *ImageFS) (files []File, env []string, err error)
	// Trees, when set, returns directories of files for the sandbox to read, and not to change. It is called after Trust.
	Trees func() []Tree
	// Live, when set, is called before the command starts with what Trees returned, in its order: each may be changed
	// until Run returns. It is not called for a sandbox that is not sealed.
	Live func([]*LiveTree)
	// Protect, when set, copies places of the project into dir, a new path. The
	// copies lie over them in the sandbox, which cannot change them. Directories
	// that are [Cover.Held] are not copied.
	Protect func(dir string) ([]Cover, error)

	Stdin io.Reader // nil: none
	// Stdout and Stderr, which with a TTY gets nothing, are written to until Run returns. A write that takes longer than
	// a second when ctx has ended, or the sandbox has to be, is not waited for.
	Stdout  io.Writer
	Stderr  io.Writer
	TTY     bool // the command has a terminal
	Signals <-chan os.Signal
	// Window is the first size of the command's terminal and Resized receives the
	// others, unless Stdin and Stdout are a terminal that has one.
	Window  terminal.Size
	Resized <-chan terminal.Size

	// Exposing, when set, is called before anything of the image runs, and with it what could change the project.
	Exposing func()
	// Starting, when set, is called when the command is about to begin. From
	// then on Signals are passed on, and end a start that hangs, with
	// engine.ErrInterrupted; before, only ctx ends the preparation.
	Starting func()
	// Began, when set, is called when the command has begun: from then on Run
	// returns the command's exit code when ctx ends.
	Began func()
	// Ended, when set, is called when no process of the command is left, and before the containers are removed. It is
	// not called where Run returns because the sandbox has to be ended. It may be called twice.
	Ended func()
	// Cut, when set, is called after Ended, while the containers are removed: nothing comes from them any more. It is not
	// called where Run returns because the sandbox has to be ended.
	Cut func()
	// Terminal, when set, is called when what restores the person's terminal
	// changes, before it does: a process that outlives this one can do it.
	Terminal func(terminal.State)
	// Unenforced, when set, is called before the command has written anything
	// when the kernel does not enforce the limits that are named.
	Unenforced func(limits []string)
	// Exhausted, when set, is called at the end of a sandbox that ran out of
	// something.
	Exhausted func(engine.Exhaustion)
}

// Tree is a directory of a sandbox that is mounted read-only. A sandbox that is not
// sealed may be on another machine: it gets the files themselves, which its root
// user may change.
type Tree struct {
	Target string // absolute
	Files  []File // their paths are relative to Target
	// OnDisk keeps it out of this host's shared memory, in which no program may be run where that is mounted so.
	OnDisk bool
}

// Cover is a file or directory that lies over a place of the project.
type Cover struct {
	Source string // on this host
	Path   string // relative to the project, or an absolute path in the sandbox
	// Held makes the place of the project's own directory, Source, a mount point: the sandbox may write to it, but
	// cannot rename or remove it, and with it what lies read-only in it. All other covers are read-only.
	Held bool
	// Own reports whether Source is that place itself, not a copy, and read-only all the same.
	Own bool
}

// Run runs the sandbox from its creation to its removal and returns the
// command's exit code, 128+N when signal N ended it. When ctx ends, the command
// is stopped. The error is about the sandbox, never about the command's work: it
// is what ended the sandbox when the command did not. It is engine.ErrLeft when
// containers are left, which happens only where their engine went away; a
// [CommandError] or an [ImageError] when the image cannot run the command; a
// [ProjectError] when the project has what no sandbox may see.
func (p *Prepared) Run(ctx context.Context, u Uplink) (code int, err error) {
	b := box{Spec: p.spec, Uplink: u, Limits: p.Limits, Unsealed: !p.Sealed, Place: p.Place}
	b.Image, b.carry = p.Image, p.carry
	if p.IsNative() {
		return p.runNative(ctx, b)
	}
	p.beside.Wait() // a sandbox that was left may have the same files
	return p.Engine.run(ctx, b)
}

// addFiles adds the files of b that are not known before: those by which its image trusts the proxy, and its trees.
func (b *box) addFiles(open func() (*ImageFS, error)) error {
	if b.Trust != nil {
		image, err := open()
		if err != nil {
			return err
		}
		files, env, err := b.Trust(image)
		image.Close()
		if err != nil {
			return err
		}
		b.Files, b.Env = append(b.Files, files...), append(b.Env, env...)
	}
	if b.Trees != nil {
		b.trees = b.Trees()
	}
	if b.Unsealed {
		for _, tree := range b.trees {
			for _, f := range tree.Files {
				b.Files = append(b.Files, File{Path: path.Join(tree.Target, f.Path), Mode: f.Mode, Data: f.Data})
			}
		}
		b.trees = nil
	}
	return nil
}

// File is one file, or directory, that is put into a sandbox before it starts.
type File = livetree.File

// LiveTree is a [Tree] in a sandbox that runs, which only this host can change. Its zero value is a tree without a
// place: the sandbox has the files of its start.
type LiveTree = livetree.Live

// ErrNotLive is returned for a tree that cannot be changed: the sandbox is not sealed, or has ended.
var ErrNotLive = livetree.ErrNotLive

// Engine is an engine that makes sandboxes.
type Engine struct {
	*engine.Engine
	seen   sync.Map // *imagefs.FS of each image that was opened, by its id
	pinned sync.Map // engine.Image of each image that was looked up, by its id, which is a digest of it
	cache  string   // the directory of what is known of images; "" is none

	loading   sync.Mutex // of what is in the cache
	gateway   sync.Mutex // guards gatewayID
	gatewayID string     // of the gateway's image; "": not known
}

// Find returns the engine of a kind: podman, docker, or auto for the first of
// the two that responds. It is waited for with patience, as long as it is used.
func Find(ctx context.Context, kind string, patience engine.Patience) (*Engine, error) {
	e, err := patience.Find(ctx, kind)
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e}, nil
}

// MaxProcesses is how many processes and threads a sandbox may have.
const MaxProcesses = 4096

// machine returns what the engine's machine has.
func (e *Engine) machine(ctx context.Context) (_ engine.Limits, err error) {
	defer e.Explain(&err)
	host, err := e.Host(ctx)
	if err != nil {
		return engine.Limits{}, fmt.Errorf("ask %s what its machine has: %w", e.Kind(), err)
	}
	return host.Machine, nil
}

// Share returns what a sandbox may have of a machine unless it is configured:
// three quarters of its memory, and all its CPUs but a quarter of one.
func Share(machine engine.Limits) engine.Limits {
	return engine.Limits{Memory: machine.Memory / 4 * 3, CPUs: max(machine.CPUs-0.25, 0)}
}
