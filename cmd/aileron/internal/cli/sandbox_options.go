package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/project"
	"github.com/ALRubinger/aileron/sandbox"
)

// SandboxOptions are the flags of the commands that run something in a sandbox.
type SandboxOptions struct {
	SessionOptions
	project.Sandbox
	Engine    string
	Build     string
	Proxy     string // auto, on or off
	Keep      bool   // an agent's own state
	KeepGiven bool   // by a flag

	Unattended      bool // the agent does not ask
	UnattendedGiven bool // by a flag
	Detach          bool // the session lives in a process of its own
}

// Register adds the flags. sandboxes are the values of --sandbox, for its help.
func (o *SandboxOptions) Register(cmd *cobra.Command, sandboxes string) {
	o.SessionOptions.Register(cmd)
	o.RegisterQuiet(cmd)
	o.RegisterProject(cmd)
	o.RegisterImage(cmd, sandboxes)
	f := cmd.Flags()
	f.StringVar(&o.Proxy, "sandbox-proxy", "auto", "mediation: on (sealed, or no sandbox), "+
		"auto (by convention where the engine cannot seal) or off (none)")
	f.StringArrayVar(&o.Mounts, "mount", nil, "mount a file or directory too: SRC[:DST][:ro] (repeatable)")
	f.StringArrayVar(&o.Env, "env", nil, "pass a variable, which must not be a bound secret: K=V (repeatable)")
	f.StringArrayVar(&o.Ports, "port", nil, "publish a port of the sandbox on 127.0.0.1: [HOST:]PORT (repeatable)")
	f.BoolVarP(&o.Detach, "detach", "d", false,
		"leave the session running in the background: aileron session attach reaches it")
	f.BoolVar(&o.Devcontainer.HostCommands, "host-commands", false,
		"let the devcontainer's initializeCommand run on this host, after you have agreed to it")
	f.BoolVar(&o.ReadOnly, "read-only", false,
		"allow the command to write only to the project, its home, /tmp, /var/tmp and /run")
	f.BoolVar(&o.Protect, "protect", false,
		"keep the command from changing those files of the project that your host would run: .git/config, .envrc, "+
			".vscode and the like (git's hooks are always read-only)")
}

// RegisterImage adds the flags of a sandbox without a session.
func (o *SandboxOptions) RegisterImage(cmd *cobra.Command, sandboxes string) {
	o.RegisterEngine(cmd, sandboxes)
	f := cmd.Flags()
	f.StringVar(&o.Build, "sandbox-build", "auto", "when to build the image: auto (if it is missing), always or never")
	f.StringVar(&o.Image, "image", "", "run this image instead of aileron's own")
	o.RegisterCustom(cmd)
	o.RegisterDir(cmd)
	o.RegisterDevcontainer(cmd)
}

// RegisterCustom adds the flags of what is added to aileron's own images.
func (o *SandboxOptions) RegisterCustom(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.Custom.Packages, "packages", nil, "add these Debian packages to the image: NAME[,NAME]")
	f.StringVar(&o.Custom.Dockerfile, "dockerfile", "",
		"build the image of this Dockerfile, or of none: off (default: "+project.Dockerfile+" of the project, if it exists)")
	f.BoolVarP(&o.Custom.Yes, "yes", "y", false, "build the Dockerfile, or the layer of an agent, without confirmation")
}

func (o *SandboxOptions) RegisterEngine(cmd *cobra.Command, sandboxes string) {
	cmd.Flags().StringVar(&o.Engine, "sandbox", "auto", "the engine that runs the sandbox: "+sandboxes)
}

// RegisterDevcontainer adds the flag of which devcontainer of the project is used.
func (o *SandboxOptions) RegisterDevcontainer(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Devcontainer.Name, "devcontainer", "",
		"use this devcontainer of the project, .devcontainer/NAME/devcontainer.json, or none: off")
}

func (o *SandboxOptions) RegisterDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Dir, "dir", "",
		"project directory, at its own path and at "+sandbox.Workspace+" in the sandbox (default: the current one)")
}

func (o *SandboxOptions) Check(off bool) error {
	if err := o.SessionOptions.Check(); err != nil {
		return err
	}
	if err := OneOf("sandbox-proxy", o.Proxy, "auto", "on", "off"); err != nil {
		return err
	}
	if err := o.checkImage(off, sandbox.Runtimes()); err != nil {
		return err
	}
	if o.Unattended && (o.Engine == "off" || o.Proxy == "off") {
		return failure.Usagef("--unattended is for a sealed sandbox, and --sandbox=off and --sandbox-proxy=off are none")
	}
	return o.CheckShared(o.Engine == "off", o.Detach, o.KeepGiven, o.Proxy != "auto")
}

// CheckImage checks the flags of an image, for which it takes an engine.
func (o *SandboxOptions) CheckImage(off bool) error { return o.checkImage(off, sandbox.Kinds()) }

func (o *SandboxOptions) checkImage(off bool, engines []string) error {
	switch {
	case off:
		engines = append(engines, "off")
	case o.Engine == "off":
		return failure.Usagef("--sandbox is off; use aileron run -- CMD for a command without a sandbox")
	}
	if err := OneOf("sandbox", o.Engine, engines...); err != nil {
		return err
	}
	if o.Engine == sandbox.Native && o.Image != "" {
		return failure.Usagef("--sandbox=native has this host's programs, and no image: leave out --image")
	}
	return OneOf("sandbox-build", o.Build, "auto", "always", "never")
}

// CheckCapture refuses a capture that the sandbox's command could read or replace, as a usage error.
func (o *SandboxOptions) CheckCapture() error {
	if o.Capture == "" || o.Engine == "off" {
		return nil
	}
	path, err := launch.PlaceCapture(o.Capture, cmp.Or(o.Dir, "."), o.Shared.Mounts)
	if err != nil {
		return failure.Usage(err)
	}
	o.Capture = path // without links: they may lead elsewhere later
	return nil
}
