// Package sync has the command aileron sync, which installs what actions pin.
package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/actions"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

type syncOptions struct {
	connector.ConnectorInstallOptions
}

func New(a *cli.App) *cobra.Command {
	opts := &syncOptions{}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Install what the action files pin, and list what is not bound",
		Long: "Install the connectors that the action files pin, each in the version and with the\n" +
			"hash of its pin. What is fetched is printed and asked for, as for connector install.\n" +
			"It lists the pinned connectors that have no credential yet.",
		Example: "  aileron sync\n  aileron sync --yes --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	opts.FetchOptions.Register(cmd)
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "grant what the connectors ask for, without confirmation")
	return cmd
}

// syncJSON is what sync prints with --json.
type syncJSON struct {
	Connectors []pinJSON         `json:"connectors"`
	Unbound    []string          `json:"unbound"` // pinned connectors that have no credential
	Failed     []syncFailureJSON `json:"failed"`
}

// pinJSON is a connector that an action pins.
type pinJSON struct {
	FQN     string   `json:"fqn"`
	Version string   `json:"version"`
	Hash    string   `json:"hash"`
	Actions []string `json:"actions"`
	Already bool     `json:"already"`
}

// syncFailureJSON is an action or a pin that is not in order.
type syncFailureJSON struct {
	Action    string `json:"action,omitempty"`
	Connector string `json:"connector,omitempty"` // FQN@VERSION
	Class     string `json:"class"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`

	err error
}

func (o *syncOptions) run(ctx context.Context, a *cli.App) (err error) {
	home, err := a.Home()
	if err != nil {
		return err
	}
	files, err := action.In(home).List()
	if err != nil {
		return err
	}
	s, err := a.OpenStore()
	if err != nil {
		return err
	}
	f, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.CloseAfter(err) }()
	result := syncJSON{Connectors: []pinJSON{}, Unbound: []string{}, Failed: []syncFailureJSON{}}
	pins := actions.PinsOf(files, func(f action.File, err error) { result.fail(f.Name, "", err) })
	for _, p := range pins {
		already, err := o.installPin(ctx, a, s, f, p)
		if errors.As(err, new(console.ExitError)) || ctx.Err() != nil { // a signal
			return err
		}
		if err != nil {
			result.fail("", p.String(), err)
			continue
		}
		result.Connectors = append(result.Connectors,
			pinJSON{string(p.FQN), p.Version, p.Hash, p.Actions, already})
	}
	if result.Unbound, err = actions.Unbound(a.Dir, s, pins); err != nil {
		return err
	}
	return result.print(a, len(files))
}

func (r *syncJSON) fail(name, connector string, err error) {
	d := failure.Describe(err)
	r.Failed = append(r.Failed, syncFailureJSON{name, connector, d.Class, d.Reason, d.Message, err})
}

// installPin installs what is pinned, unless it is installed already.
func (o *syncOptions) installPin(ctx context.Context, a *cli.App, s *store.Store, f *connectors.Fetcher,
	p *actions.Pinned,
) (already bool, err error) {
	if _, err := s.Load(p.Hash); err == nil {
		return true, nil
	}
	one := connector.Installer(a) // a question for each: they are of different publishers
	one.Hash, one.Yes = p.Hash, o.Yes
	sources, err := one.Confirm(ctx, s, f, []string{p.String()})
	if err != nil {
		return false, err
	}
	installed, err := one.Install(ctx, s, sources)
	return len(installed) == 1 && installed[0].Already, err
}

// print prints the result, and returns an error if a part of it failed.
func (r *syncJSON) print(a *cli.App, files int) error {
	if a.JSON {
		if err := a.PrintJSON(r); err != nil {
			return err
		}
	} else {
		r.printText(a, files)
	}
	if len(r.Failed) == 0 {
		return nil
	}
	first := r.Failed[0]
	what := first.Connector
	if first.Action != "" {
		what = "the action " + first.Action
	}
	err := fmt.Errorf("sync: %s failed, the first: %s: %w", hint.Plural(len(r.Failed), "part"), what, first.err)
	return hint.New(err, "%s", connectors.HintOr(first.err, "the others are in order; try again"))
}

func (r *syncJSON) printText(a *cli.App, files int) {
	if files == 0 {
		a.Infof("aileron: there are no actions; add one with: aileron action add FILE")
	}
	for _, c := range r.Connectors {
		verb := "installed"
		if c.Already {
			verb = "already installed"
		}
		fmt.Fprintf(a.Stdout, "%s %s %s %s (%s)\n", verb, c.FQN, c.Version, c.Hash, strings.Join(c.Actions, ", "))
	}
	for _, f := range r.Failed[min(1, len(r.Failed)):] { // the first is the error of the command
		a.Infof("aileron: %s%s: %s", f.Action, f.Connector, f.Message)
	}
	for _, fqn := range r.Unbound {
		a.Infof("next: aileron binding setup %s", spec.FQN(fqn))
	}
}
