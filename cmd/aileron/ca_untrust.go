package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/internal/session"
)

func newCAUntrustCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "untrust [SESSION]",
		Short: "Remove the root of a session, or those of all, from the trust stores of this host",
		Long: `Remove what aileron ca trust has added: the root of a session, which may have ended,
or without one the roots of all sessions of this home.`,
		Example: "  aileron ca untrust\n  aileron ca untrust 01J…",
		Args:    usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.caUntrust(cmd.Context(), strings.ToUpper(strings.Join(args, "")))
		},
	}
}

func (a *app) caUntrust(ctx context.Context, prefix string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	ledger, done := a.ledger(home)
	var errs []error
	reports := []trustReport{}
	for _, r := range ledger.Records() {
		if !strings.HasPrefix(r.Session, prefix) {
			continue
		}
		outcomes, err := ledger.Untrust(ctx, r.Session)
		if !a.json {
			a.printStores(outcomes)
		}
		reports = append(reports, trustReport{Session: r.Session, Stores: append([]hosttrust.Outcome{}, outcomes...)})
		errs = append(errs, err, session.NotRemoved(r.Session, outcomes))
	}
	errs = append(errs, done())
	switch {
	case a.json:
		errs = append(errs, a.printJSON(reports))
	case len(reports) == 0 && prefix == "":
		a.infof("aileron: no root of a session is in a trust store of this host")
	case len(reports) == 0:
		a.infof("aileron: no root of the session %s is in a trust store of this host", prefix)
	}
	return errors.Join(errs...)
}

// settleTrust removes the roots of sessions that were killed from the trust stores of this host, and those that have
// expired. Every command begins with it, as the session itself can do it no more.
func (a *app) settleTrust(ctx context.Context) {
	home, err := a.homePath()
	if err != nil {
		return // the command itself reports it
	}
	ledger, done := a.ledger(home)
	alive := func(id string) bool { return session.Alive(home, id) }
	for _, id := range ledger.Stale(alive) {
		outcomes, err := ledger.Untrust(ctx, id)
		if err == nil {
			err = session.NotRemoved(id, outcomes)
		}
		switch {
		case err != nil:
			a.infof("aileron: warning: %s; %s", asLine(err.Error()), asLine(hint.Of(err)))
		case len(outcomes) > 0:
			a.infof("aileron: removed the root of the session %s, which was killed, from %s of this host", id,
				plural(len(outcomes), "trust store"))
		}
	}
	if err := done(); err != nil {
		a.infof("aileron: warning: close the audit log: %v", err)
	}
}

// checkTrust looks for roots in trust stores of this host that should not be there any more.
func (d *doctor) checkTrust(context.Context) {
	home, err := d.Home()
	if err != nil {
		return
	}
	for _, r := range (hosttrust.Ledger{Home: home}).Records() {
		switch alive := session.Alive(home, r.Session); {
		case r.Err != nil:
			d.add(failed("trust", r.Err, ""))
		case alive && time.Now().Before(r.NotAfter):
			d.add(healthy("trust", "%s of this host trust the root of the session %s, until it ends",
				plural(len(r.Stores), "store"), r.Session))
		default:
			var stores []string
			for _, s := range r.Stores {
				stores = append(stores, s.String())
			}
			d.add(failed("trust", fmt.Errorf("the root of the session %s, which has ended, is in trust stores of this host: %s",
				r.Session, strings.Join(stores, ", ")), "aileron ca untrust "+r.Session))
		}
	}
}
