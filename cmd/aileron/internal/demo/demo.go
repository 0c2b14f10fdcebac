// Package demo has the command aileron demo: the main job with nothing set up.
package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	auditcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
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
	d, err := newDemo()
	if err != nil {
		return err
	}
	defer func() {
		_ = d.origin.Close()
		_ = os.RemoveAll(d.Dir)
	}()
	sub := a.WithHome(d.Flag, func(name string) string {
		if name == "AILERON_VAULT_PASSPHRASE" {
			return "the-demo-vault-" + d.secret[:8]
		}
		return ""
	})
	if err := d.prepare(ctx, sub); err != nil {
		return err
	}
	a.Infof("aileron demo: an origin at https://%s (on this machine) requires a secret; "+
		"the vault has it, the sandbox will not", demoHost)
	boxed := canSandboxDemo(ctx, a, engine)
	if err := d.play(ctx, sub, engine, boxed); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "\n# on the host: what a reviewer sees (aileron audit list)\n")
	if err := auditcmd.AuditList(ctx, sub, audit.Filter{}, false); err != nil {
		return err
	}
	return d.verdict(ctx, sub, boxed)
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
func (d *demo) play(ctx context.Context, a *cli.App, engine string, boxed bool) error {
	opts := &cli.SandboxOptions{Engine: engine, Build: "auto"}
	opts.Dir, opts.Egress = filepath.Join(d.Dir, "project"), "deny"
	opts.Resolve, opts.UpstreamCA = []string{demoHost + ":443:" + d.addr}, d.roots
	if boxed {
		image := sandbox.BaseImage()
		return launchcmd.RunSandboxed(ctx, a, opts, launch.Sandbox{Agent: "demo", Image: image, Command: []string{"sh", "-c",
			demoScript}})
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return hint.New(fmt.Errorf("run the demo on the host: there is no curl"), "install curl, or Podman for a sandbox")
	}
	command := []string{"sh", "-c", "cooperative=1; " + demoScript}
	return launchcmd.RunOnHost(ctx, a, &opts.SessionOptions, launch.HostCommand{Agent: "demo", Args: command})
}

// demoScript does what an agent would do, with curl alone.
const demoScript = `
say() { printf '\n# %s\n' "$*"; }
say "1. a call that an operation allows: curl https://api.tracker.example/v1/issues/42"
curl -sS https://api.tracker.example/v1/issues/42 || exit 1
say "2. what the sandbox has of the secret: TRACKER_TOKEN=$TRACKER_TOKEN, a worthless placeholder"
say "3. an endpoint that echoes our headers: the secret comes back redacted"
curl -sS https://api.tracker.example/v1/echo || exit 1
say "4. what no operation allows is denied, inside the tunnel, and never sent"
curl -sS https://api.tracker.example/admin
if [ -z "$cooperative" ]; then
say "5. a client that ignores the proxy is mediated all the same: curl --noproxy '*'"
env -u HTTPS_PROXY -u https_proxy -u HTTP_PROXY -u http_proxy \
  curl -sS --noproxy '*' https://api.tracker.example/v1/issues/43 || exit 1
say "6. and there is no other way out"
curl -sS --noproxy '*' --max-time 5 https://192.0.2.1/ || true
fi
`

// verdict checks that the audit log agrees with what was printed.
func (d *demo) verdict(ctx context.Context, a *cli.App, boxed bool) error {
	l, err := a.AuditReader()
	if err != nil || l == nil {
		return fmt.Errorf("read the demo's audit log: %w", err)
	}
	defer l.Close()
	count := map[audit.Decision]int{}
	redacted := 0
	err = l.Each(ctx, audit.Filter{}, func(r audit.Row) error {
		count[r.Decision]++
		redacted += r.Redactions
		return nil
	})
	if err != nil {
		return err
	}
	report, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	want := map[bool][2]int{true: {3, 2}, false: {2, 1}}[boxed]
	if count["proxied"] != want[0] || count["rejected"] != want[1] || redacted == 0 || !report.OK {
		return fmt.Errorf("the demo did not go as expected: %d proxied, %d rejected, %d redacted, chain ok: %v",
			count["proxied"], count["rejected"], redacted, report.OK)
	}
	a.Infof("")
	a.Infof("aileron demo: done: %d calls proxied, %d denied, the secret redacted %d time(s), %d audit events verified",
		count["proxied"], count["rejected"], redacted, report.Rows)
	return nil
}
