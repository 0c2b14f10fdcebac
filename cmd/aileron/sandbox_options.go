package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
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
	mounts    []string // SRC[:DST][:ro]
	env       []string // K=V
	ports     []string // [HOST:]PORT
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
	f.BoolVar(&o.readOnly, "read-only", false,
		"allow the command to write only to the project, its home, /tmp, /var/tmp and /run")
	f.BoolVar(&o.protect, "protect", false,
		"keep the command from changing those files of the project that your host would run: .git/config, .envrc, "+
			".vscode and the like (git's hooks are always read-only)")
}

// registerImage adds the flags of a sandbox without a session.
func (o *sandboxOptions) registerImage(cmd *cobra.Command, sandboxes string) {
	f := cmd.Flags()
	f.StringVar(&o.sandbox, "sandbox", "auto", "the engine that runs the sandbox: "+sandboxes)
	f.StringVar(&o.build, "sandbox-build", "auto", "when to build the image: auto (if it is missing), always or never")
	f.StringVar(&o.image, "image", "", "run this image instead of aileron's own")
	o.custom.register(cmd)
	f.StringVar(&o.dir, "dir", "", "project directory, at "+sandbox.Workspace+" in the sandbox (default: the current one)")
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
	if o.sandbox == "off" && len(o.mounts)+len(o.env)+len(o.ports) > 0 {
		return usagef("--mount, --env and --port are for a sandbox, and --sandbox=off is none")
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
	s.Protect, s.Variables = opts.protect, opts.env
	for _, text := range opts.ports {
		p, err := launch.ParsePort(text)
		if err != nil {
			return err
		}
		s.Ports = append(s.Ports, p)
	}
	for _, text := range opts.mounts {
		m, err := launch.ParseMount(text, l.Home)
		if err != nil {
			return err
		}
		s.Mounts = append(s.Mounts, m)
	}
	if s.Image, err = a.imageOf(opts, s.Image, l.Config.Packages); err != nil {
		return err
	}
	if err := a.unlockFirst(ctx, &opts.sessionOptions); err != nil {
		return err
	}
	return l.Sandboxed(ctx, s)
}
