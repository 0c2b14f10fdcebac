package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// sandboxOptions are the flags of the commands that run something in a sandbox.
type sandboxOptions struct {
	sessionOptions
	sandbox   string
	build     string
	image     string
	dir       string
	proxy     string // auto, on or off
	readOnly  bool   // the root file system is read-only
	protect   bool   // so are the project's files that the host would run
	keep      bool   // an agent's own state
	keepGiven bool   // by a flag
	custom    customOptions
	detach    bool     // the session lives in a process of its own
	mounts    []string // SRC[:DST][:ro]
	env       []string // K=V
	ports     []string // [HOST:]PORT

	shared *sharedOptions // the last three, and those of the project's file; nil: not parsed yet
}

// sharedOptions are what a sandbox shares with this host besides its project.
type sharedOptions struct {
	mounts []engine.Mount
	env    []string
	ports  []launch.Port
}

// recorded returns it for the audit log.
func (o *sharedOptions) recorded() session.Shared {
	r := session.Shared{Variables: variableNames(o.env)}
	for _, m := range o.mounts {
		text := m.Source + ":" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		r.Mounts = append(r.Mounts, text)
	}
	for _, p := range o.ports {
		r.Ports = append(r.Ports, fmt.Sprintf("%d:%d", p.Host, p.Sandbox))
	}
	return r
}

// parseShared parses --mount, --env and --port.
func (o *sandboxOptions) parseShared(home string) error {
	if o.shared != nil {
		return nil
	}
	shared := &sharedOptions{env: slices.Clone(o.env)}
	for _, text := range o.ports {
		p, err := launch.ParsePort(text)
		if err != nil {
			return err
		}
		shared.ports = append(shared.ports, p)
	}
	for _, text := range o.mounts {
		m, err := launch.ParseMount(text, home)
		if err != nil {
			return err
		}
		shared.mounts = append(shared.mounts, m)
	}
	o.shared = shared
	return nil
}

// register adds the flags. sandboxes are the values of --sandbox, for its help.
func (o *sandboxOptions) register(cmd *cobra.Command, sandboxes string) {
	o.sessionOptions.register(cmd)
	o.registerQuiet(cmd)
	o.registerProject(cmd)
	o.registerImage(cmd, sandboxes)
	f := cmd.Flags()
	f.StringVar(&o.proxy, "sandbox-proxy", "auto", "mediation: on (sealed, or no sandbox), "+
		"auto (by convention where the engine cannot seal) or off (none)")
	f.StringArrayVar(&o.mounts, "mount", nil, "mount a file or directory too: SRC[:DST][:ro] (repeatable)")
	f.StringArrayVar(&o.env, "env", nil, "pass a variable, which must not be a bound secret: K=V (repeatable)")
	f.StringArrayVar(&o.ports, "port", nil, "publish a port of the sandbox on 127.0.0.1: [HOST:]PORT (repeatable)")
	f.BoolVarP(&o.detach, "detach", "d", false,
		"leave the session running in the background: aileron session attach reaches it")
	f.BoolVar(&o.readOnly, "read-only", false,
		"allow the command to write only to the project, its home, /tmp, /var/tmp and /run")
	f.BoolVar(&o.protect, "protect", false,
		"keep the command from changing those files of the project that your host would run: .git/config, .envrc, "+
			".vscode and the like (git's hooks are always read-only)")
}

// registerImage adds the flags of a sandbox without a session.
func (o *sandboxOptions) registerImage(cmd *cobra.Command, sandboxes string) {
	o.registerEngine(cmd, sandboxes)
	f := cmd.Flags()
	f.StringVar(&o.build, "sandbox-build", "auto", "when to build the image: auto (if it is missing), always or never")
	f.StringVar(&o.image, "image", "", "run this image instead of aileron's own")
	o.custom.register(cmd)
	o.registerDir(cmd)
}

func (o *sandboxOptions) registerEngine(cmd *cobra.Command, sandboxes string) {
	cmd.Flags().StringVar(&o.sandbox, "sandbox", "auto", "the engine that runs the sandbox: "+sandboxes)
}

func (o *sandboxOptions) registerDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dir, "dir", "",
		"project directory, at "+sandbox.Workspace+" in the sandbox (default: the current one)")
}

func (o *sandboxOptions) check(off bool) error {
	if err := o.sessionOptions.check(); err != nil {
		return err
	}
	if err := oneOf("sandbox-proxy", o.proxy, "auto", "on", "off"); err != nil {
		return err
	}
	if err := o.checkImage(off); err != nil {
		return err
	}
	for _, text := range o.env {
		if err := launch.CheckVariable(text); err != nil {
			return err
		}
	}
	if o.sandbox == "off" && o.detach {
		return usagef("--detach is for a sandbox, and --sandbox=off is none; " +
			"run the command in tmux or screen to leave it on this host")
	}
	if o.sandbox == "off" && len(o.mounts)+len(o.env)+len(o.ports) > 0 {
		return usagef("--mount, --env and --port are for a sandbox, and --sandbox=off is none")
	}
	if o.sandbox == "off" && o.keepGiven {
		return usagef("--keep is for a sandbox, and --sandbox=off is none: the agent uses its state on this host")
	}
	if o.sandbox == "off" && (o.proxy != "auto" || o.readOnly || o.protect || o.custom.asked()) {
		return usagef("--sandbox-proxy, --read-only, --protect, --packages and --dockerfile are for a sandbox, " +
			"and --sandbox=off is none")
	}
	return nil
}

func (o *sandboxOptions) checkImage(off bool) error {
	engines := knownEngines()
	switch {
	case off:
		engines = append(engines, "off")
	case o.sandbox == "off":
		return usagef("--sandbox is off; use aileron run -- CMD for a command without a sandbox")
	}
	if err := oneOf("sandbox", o.sandbox, engines...); err != nil {
		return err
	}
	return oneOf("sandbox-build", o.build, "auto", "always", "never")
}

// knownEngines returns the values of --sandbox that name an engine: auto is the first that responds.
func knownEngines() []string { return []string{"auto", "podman", "docker"} }

// runSandboxed runs a command in a sandbox with a session of its own. The flags complete s.
func (a *app) runSandboxed(ctx context.Context, opts *sandboxOptions, s launch.Sandbox) error {
	l, err := a.launcher(&opts.sessionOptions)
	if err != nil {
		return err
	}
	s.Engine, s.Build, s.Dir, s.Proxy, s.ReadOnly = opts.sandbox, opts.build, opts.dir, opts.proxy, opts.readOnly
	if err := opts.parseShared(l.Home); err != nil {
		return err
	}
	s.Protect, s.Mounts, s.Variables, s.Ports = opts.protect, opts.shared.mounts, opts.shared.env, opts.shared.ports
	opts.shares = opts.shared.recorded()
	if err := opts.checkCapture(); err != nil {
		return err
	}
	if s.Image, err = a.imageOf(opts, s.Image, l.Config.Packages); err != nil {
		return err
	}
	if a.detached != nil {
		s.Began = func(running *session.Session) {
			a.detached.begun(l.Home, running.ID(), detached.MessagesPath(l.Home, running.ID()))
		}
		if opts.opened, err = a.detached.openVault(a.vaultAt(l.Home)); err != nil {
			return err
		}
		return a.sandboxed(ctx, l, opts, s)
	}
	if opts.detach {
		if err := a.unlockBound(ctx, &opts.sessionOptions); err != nil {
			return err
		}
		id, err := a.detach(ctx, &opts.sessionOptions)
		if err != nil {
			return err
		}
		return a.printDetached(id)
	}
	if err := a.unlockFirst(ctx, &opts.sessionOptions); err != nil {
		return err
	}
	return a.sandboxed(ctx, l, opts, s)
}

// sandboxed runs a command in a sandbox. The installed connectors are read while the engine is waited for.
func (a *app) sandboxed(ctx context.Context, l *launch.Launcher, opts *sandboxOptions, s launch.Sandbox) error {
	if installed, err := a.openStore(); err == nil { // otherwise the session has the error
		opts.reading = installed.Begin()
		defer opts.reading.Wait()
	}
	return l.Sandboxed(ctx, s)
}
