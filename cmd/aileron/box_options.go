package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
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
		return "", nil, hint.New(fmt.Errorf("find the project directory: %w", err), "this directory was removed; go into one that exists, or name one with --dir")
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, hint.New(fmt.Errorf("use the project directory: %w", err), "--dir names a directory that exists")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", nil, hint.New(fmt.Errorf("use the project directory: %s is not a directory", dir), "--dir names a directory that exists")
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
		return "", nil, hint.New(fmt.Errorf("use the project directory %s: it is aileron's own home %s, which a box must not have", dir, home), "go into a project's directory, or name one with --dir")
	case sandbox.Within(home, dir):
		return dir, []string{home}, nil
	}
	return dir, nil, nil
}
