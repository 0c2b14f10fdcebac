// Package ca has the commands of aileron ca: a file a verb.
package ca

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show the CA of a session, or let this host trust it",
		Args:  cli.UsageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCAShowCommand(a), newCATrustCommand(a), newCAUntrustCommand(a))
	return cmd
}

func newCAShowCommand(a *cli.App) *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the root that a browser or a program of this host may trust for a session",
		Long: "Show the root that a browser or a program of this host may trust for a session of aileron run or aileron\n" +
			"proxy. It can vouch for the hosts that the session's connectors declare, and for no others, for twelve\n" +
			"hours at most; its key does not exist any more. Nothing of this host is changed.",
		Example: "  aileron ca show 01J…\n  aileron ca show 01J… --pem > session.pem",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return caShow(cmd.Context(), a, args[0], only) },
	}
	cmd.Flags().BoolVar(&only, "pem", false, "print the certificate alone")
	return cmd
}

func caShow(ctx context.Context, a *cli.App, id string, only bool) error {
	home, s, err := a.FindSession(ctx, id)
	if err != nil {
		return err
	}
	c, err := s.Certificate(ctx, home)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(c)
	case len(c.Names) == 0:
		a.Infof("aileron: warning: this root can vouch for any name: it is for the session's own sandbox or command; " +
			"do not add it to a browser or to this host")
	}
	if only {
		fmt.Fprint(a.Stdout, c.PEM)
		return nil
	}
	line := func(name, value string) { fmt.Fprintf(a.Stdout, "%-9s%s\n", name, termsafe.Line(value)) }
	line("session", s.ID)
	line("subject", c.Subject)
	line("sha256", c.SHA256)
	line("from", c.NotBefore.Local().Format(time.RFC3339))
	line("until", c.NotAfter.Local().Format(time.RFC3339))
	line("names", cmp.Or(strings.Join(c.Names, ", "), "any"))
	fmt.Fprint(a.Stdout, c.PEM)
	return nil
}
