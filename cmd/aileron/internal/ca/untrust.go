package ca

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/internal/session"
)

func newCAUntrustCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "untrust [SESSION]",
		Short: "Remove the root of a session, or those of all, from the trust stores of this host",
		Long: `Remove what aileron ca trust has added: the root of a session, which may have ended,
or without one the roots of all sessions of this home.`,
		Example: "  aileron ca untrust\n  aileron ca untrust 01J…",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return caUntrust(cmd.Context(), a, strings.ToUpper(strings.Join(args, "")))
		},
	}
}

func caUntrust(ctx context.Context, a *cli.App, prefix string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	ledger, done := ledger(a, home)
	var errs []error
	reports := []trustReport{}
	for _, r := range ledger.Records() {
		if !strings.HasPrefix(r.Session, prefix) {
			continue
		}
		outcomes, err := ledger.Untrust(ctx, r.Session)
		if !a.JSON {
			printStores(a, outcomes)
		}
		reports = append(reports, trustReport{Session: r.Session, Stores: append([]hosttrust.Outcome{}, outcomes...)})
		errs = append(errs, err, session.NotRemoved(r.Session, outcomes))
	}
	errs = append(errs, done())
	switch {
	case a.JSON:
		errs = append(errs, a.PrintJSON(reports))
	case len(reports) == 0 && prefix == "":
		a.Infof("aileron: no root of a session is in a trust store of this host")
	case len(reports) == 0:
		a.Infof("aileron: no root of the session %s is in a trust store of this host", prefix)
	}
	return errors.Join(errs...)
}

// SettleTrust removes the roots of sessions that were killed from the trust stores of this host, and those that have
// expired. Every command begins with it, as the session itself can do it no more.
func SettleTrust(ctx context.Context, a *cli.App) {
	home, err := a.HomePath()
	if err != nil {
		return // the command itself reports it
	}
	ledger, done := ledger(a, home)
	alive := func(id string) bool { return session.Alive(home, id) }
	for _, id := range ledger.Stale(alive) {
		outcomes, err := ledger.Untrust(ctx, id)
		if err == nil {
			err = session.NotRemoved(id, outcomes)
		}
		switch {
		case err != nil:
			a.Infof("aileron: warning: %s; %s", failure.AsLine(err.Error()), failure.AsLine(hint.Of(err)))
		case len(outcomes) > 0:
			a.Infof("aileron: removed the root of the session %s, which was killed, from %s of this host", id,
				hint.Plural(len(outcomes), "trust store"))
		}
	}
	if err := done(); err != nil {
		a.Infof("aileron: warning: close the audit log: %v", err)
	}
}
