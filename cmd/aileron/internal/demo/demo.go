// Package demo has the command aileron demo: the main job with nothing set up.
package demo

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/demo"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
)

func New(a *cli.App) *cobra.Command {
	engine := "auto"
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See aileron work, with nothing set up",
		Long: `See aileron work in a temporary home, with an origin server on this machine, a
connector and a secret of its own, and a sandbox on the engine that it finds.
The sandbox makes a credentialed call, gets an echoed secret back redacted, is
denied what no operation allows, and is mediated even where it ignores the
proxy. Without an engine the same happens on this host, where nothing is sealed.`,
		Example: "  aileron demo",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("sandbox", engine, append(sandbox.Kinds(), "off")...); err != nil {
				return err
			}
			return runDemo(cmd.Context(), a, engine)
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, hint.Alternatives(append(sandbox.Kinds(), "off")))
	return cmd
}

func runDemo(ctx context.Context, a *cli.App, engine string) error {
	d, err := demo.New()
	if err != nil {
		return err
	}
	defer d.Close()
	sub := a.WithHome(d.Home, func(name string) string {
		if name == "AILERON_VAULT_PASSPHRASE" {
			return d.Passphrase()
		}
		return ""
	})
	if err := d.Prepare(ctx, sub.Dir); err != nil {
		return err
	}
	a.Infof("aileron demo: an origin at https://%s (on this machine) requires a secret; "+
		"the vault has it, the sandbox will not", demo.Host)
	boxed := canSandboxDemo(ctx, a, engine)
	if err := play(ctx, sub, d, engine, boxed); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "\n# on the host: what a reviewer sees (aileron audit list)\n")
	log := &auditview.Source{Console: sub.Console, Dir: sub.Dir, JSON: &sub.JSON}
	if err := log.List(ctx, audit.Filter{}, true, false); err != nil {
		return err
	}
	done, err := demo.Verdict(ctx, sub.Dir, boxed)
	if err != nil {
		return err
	}
	a.Infof("")
	a.Infof("aileron demo: done: %d calls proxied, %d denied, the secret redacted %d time(s), %d audit events verified",
		done.Proxied, done.Rejected, done.Redacted, done.Rows)
	return nil
}

// canSandboxDemo reports whether there is an engine, and prints where the demo runs.
func canSandboxDemo(ctx context.Context, a *cli.App, engine string) bool {
	if engine == "off" {
		a.Infof("aileron demo: running on the host, cooperatively: it is NOT sealed")
		return false
	}
	e, err := a.FindEngine(ctx, engine)
	if err != nil {
		a.Infof("aileron demo: %v", err)
		a.Infof("aileron demo: running on the host instead, cooperatively: it is NOT sealed")
		return false
	}
	defer e.Close()
	a.Infof("aileron demo: running in a sealed sandbox on %s", e.Describe())
	return true
}

// play runs the script without the secret.
func play(ctx context.Context, a *cli.App, d *demo.Demo, engine string, boxed bool) error {
	opts := &cli.SandboxOptions{Engine: engine, Build: "auto"}
	opts.Dir, opts.Egress = filepath.Join(d.Dir, "project"), "deny"
	opts.Resolve, opts.UpstreamCA = []string{demo.Host + ":443:" + d.Addr}, d.Roots
	if boxed {
		image := sandbox.BaseImage()
		return launchcmd.RunSandboxed(ctx, a, opts, launch.Sandbox{Agent: "demo", Image: image, Command: []string{"sh", "-c",
			demo.Script}})
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return hint.New(fmt.Errorf("run the demo on the host: there is no curl"), "install curl, or Podman for a sandbox")
	}
	command := []string{"sh", "-c", "cooperative=1; " + demo.Script}
	return launchcmd.RunOnHost(ctx, a, &opts.SessionOptions, launch.HostCommand{Agent: "demo", Args: command})
}
