package ca

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

type caTrustOptions struct {
	stores []string
	yes    bool
}

func newCATrustCommand(a *cli.App) *cobra.Command {
	opts := &caTrustOptions{}
	cmd := &cobra.Command{
		Use:   "trust [SESSION]",
		Short: "Let this host's browsers and programs trust a session, for its hosts and until it ends",
		Long: `Add the root of a session of aileron run or aileron proxy, the one that aileron ca
show prints, to the trust stores of this host: the system's, the databases of
Chromium and Firefox (NSS), and the cacerts of every Java. It can vouch for the hosts
that the session's connectors declare, and for no others, for twelve hours at most.

The session removes it when it ends, and the next aileron command if the session was
killed. A store that needs root is left out unless root runs this. Browsers that run
read it when they start again. SESSION may be left out if only one runs on this host.`,
		Example: "  aileron ca trust 01J…\n  aileron ca trust --store nss --yes",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&opts.stores, "store", nil,
		"only stores of this kind: "+hint.Alternatives(storeKinds())+" (repeatable)")
	f.BoolVar(&opts.yes, "yes", false, "do not ask")
	return cmd
}

func storeKinds() (all []string) {
	for _, kind := range ca.StoreKinds() {
		all = append(all, string(kind))
	}
	return all
}

// trustReport is what ca trust and ca untrust print with --json.
type trustReport struct {
	Session  string              `json:"session_id"`
	SHA256   string              `json:"sha256,omitempty"`
	NotAfter *time.Time          `json:"not_after,omitempty"`
	Names    []string            `json:"names,omitempty"`
	Stores   []hosttrust.Outcome `json:"stores"`
}

func (o *caTrustOptions) run(ctx context.Context, a *cli.App, args []string) error {
	for _, kind := range o.stores {
		if err := cli.OneOf("store", kind, storeKinds()...); err != nil {
			return err
		}
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	s, err := a.Lister(home).OnHost(ctx, args)
	if err != nil {
		return err
	}
	root, err := s.HostRoot(ctx, home)
	if err != nil {
		return err
	}
	stores, skipped, err := hosttrust.Choose(o.stores)
	if err != nil {
		return err
	}
	if agreed, err := o.agreed(ctx, a, root, stores, skipped); err != nil || !agreed {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ledger, done := ledger(a, home)
	outcomes, root, err := ledger.Trust(ctx, stores, func(ctx context.Context) (hosttrust.Root, error) {
		return s.HostRoot(ctx, home) // again: it may have ended while the question was open
	})
	err = errors.Join(err, done())
	if err != nil && outcomes == nil {
		return err
	}
	return errors.Join(reportTrust(ctx, a, root, append(outcomes, skipped...)), err)
}

// agreed shows what is about to be trusted, and where, and asks for it.
func (o *caTrustOptions) agreed(ctx context.Context, a *cli.App, root hosttrust.Root, stores []ca.Store,
	skipped []hosttrust.Outcome,
) (bool, error) {
	if !o.yes && !a.Interactive() {
		return false, failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to trust the session %s",
			root.Session)
	}
	a.Infof("aileron: the root of the session %s", root.Session)
	a.Infof("  sha256  %s", root.SHA256())
	a.Infof("  until   %s, or the end of the session", root.Cert.NotAfter.Local().Format(time.RFC3339))
	a.Infof("  names   %s, and names below them", strings.Join(root.Names, ", "))
	for _, s := range stores {
		a.Infof("  store   %s", s)
	}
	for _, s := range skipped {
		a.Infof("  not     %s", s.Text())
	}
	if o.yes {
		return true, nil
	}
	return a.Confirm(ctx, "Let programs of this host trust it in "+hint.Plural(len(stores), "store")+"?", false)
}

// reportTrust prints the outcomes, and returns an error if a store could not be changed as it was asked for.
func reportTrust(ctx context.Context, a *cli.App, root hosttrust.Root, outcomes []hosttrust.Outcome) error {
	if a.JSON {
		until := root.Cert.NotAfter.UTC()
		if err := a.PrintJSON(trustReport{root.Session, root.SHA256(), &until, root.Names, outcomes}); err != nil {
			return err
		}
	} else {
		printStores(a, outcomes)
	}
	trusted, failed := 0, 0
	for _, o := range outcomes {
		switch o.State {
		case "trusted":
			trusted++
		case "failed":
			failed++
		}
	}
	switch {
	case ctx.Err() != nil:
		return hint.New(errors.New("interrupted: the session's root was removed again"), "%s",
			hosttrust.LeftHint(root.Session, outcomes))
	case trusted == 0:
		return errors.New("trust the session's root: no store was changed")
	case failed > 0:
		return hint.New(fmt.Errorf("trust the session's root: %d of %d stores failed; the others have it", failed,
			failed+trusted), "remove it from them with: aileron ca untrust %s", root.Session)
	}
	a.Infof("aileron: trusted until the session ends, or: aileron ca untrust %s. Restart a browser that runs",
		root.Session)
	return nil
}

func printStores(a *cli.App, outcomes []hosttrust.Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(a.Stdout, "%-8s %s\n", o.State, termsafe.Line(o.Text()))
	}
}

// ledger returns the account of trusted roots. The audit log is opened with the first row; done closes it.
func ledger(a *cli.App, home string) (l hosttrust.Ledger, done func() error) {
	var log *audit.Log
	l = hosttrust.Ledger{Home: home, Locks: a.Locks, Source: audit.SourceCLI}
	l.Append = func(ctx context.Context, r audit.Row) (err error) {
		if log == nil {
			if log, err = a.OpenLog(home); err != nil {
				log = nil
				return err
			}
		}
		_, err = log.Append(ctx, r)
		return err
	}
	return l, func() error {
		if log == nil {
			return nil
		}
		return log.Close()
	}
}
