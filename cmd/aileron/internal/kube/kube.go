// Package kube has the commands of aileron kube.
package kube

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/kube"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kube",
		Short: "Print sandboxes for Kubernetes",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newRenderCommand(a))
	return cmd
}

func newRenderCommand(a *cli.App) *cobra.Command {
	var o kube.Options
	var ports []uint
	cmd := &cobra.Command{
		Use:   "render NAME [-- COMMAND [ARG...]]",
		Short: "Print an agent's Pod and its proxy as YAML",
		Example: `  aileron kube render fix-123 --shape=pods --image=registry.example/aileron:1 \
    --agent-image=registry.example/agent:1 -- sh -c 'make test' |
    kubectl apply -f -
  aileron kube render agents --form=template --image=… --agent-image=…`,
		Args: cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name, o.Command = args[0], args[1:]
			for _, p := range ports {
				if p > 1<<16-1 {
					return failure.Usagef("--name-ports has %d; ports end at 65535", p)
				}
				o.NamePorts = append(o.NamePorts, uint16(p))
			}
			if err := kube.Render(a.Stdout, o); err != nil {
				return failure.Usage(err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar((*string)(&o.Shape), "shape", string(kube.Sidecar),
		"sidecar (one Pod, NET_ADMIN until ready) or pods (two, restricted)")
	f.StringVar((*string)(&o.Form), "form", string(kube.Plain),
		"pods, template (a SandboxTemplate) or plane (the proxy alone)")
	f.StringVar(&o.Namespace, "namespace", "", "namespace of the objects")
	f.StringVar(&o.Image, "image", "", "image of aileron")
	f.StringVar(&o.AgentImage, "agent-image", "", "image of the agent")
	f.IntVar(&o.AgentUser, "agent-user", 1000, "numeric user of the agent")
	f.UintSliceVar(&ports, "name-ports", nil, "ports at which names are reached with --shape=pods (default 443,80)")
	f.StringVar(&o.Relay, "relay", "", "where --form=plane dials, as HOST:PORT")
	return cmd
}
