package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

func newBindingInspectCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect NAME",
		Short:   "Show one binding, never its secret",
		Example: "  aileron binding inspect bearer/aileron-connector-github/work",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := a.VaultOf()
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err != nil {
				return bindings.Hint(err)
			}
			used, err := lastUse(cmd.Context(), a, b.Name)
			if a.JSON {
				return errors.Join(a.PrintJSON(inspected{b, used}), err)
			}
			fmt.Fprintf(a.Stdout, "name       %s\nconnector  %s\nkind       %s\nidentity   %s\n",
				b.Name, b.Connector, b.Kind, b.Identity)
			if b.Username != "" {
				fmt.Fprintf(a.Stdout, "username   %s\n", b.Username)
			}
			fmt.Fprintf(a.Stdout, "created    %s\nupdated    %s\n",
				b.Created.Format(time.RFC3339), b.Updated.Format(time.RFC3339))
			if !used.IsZero() {
				fmt.Fprintf(a.Stdout, "last used  %s\n", used.Format(time.RFC3339))
			}
			printLogin(a.Stdout, b)
			return err
		},
	}
}

// inspected is a binding as --json has it.
type inspected struct {
	vault.Binding
	LastUsed time.Time `json:"last_used_at,omitzero"`
}

// lastUse returns when a request last carried the credential of a binding, as far as the audit log goes back; the zero
// time: never.
func lastUse(ctx context.Context, a *cli.App, name string) (time.Time, error) {
	r, err := a.AuditReader()
	if err != nil || r == nil {
		return time.Time{}, err
	}
	defer func() { _ = r.Close() }()
	rows, err := r.List(ctx, audit.Filter{Binding: name, Event: audit.EventProxyStarted, Limit: 1, Newest: true})
	if err != nil || len(rows) == 0 {
		return time.Time{}, err
	}
	return rows[0].TS, nil
}

// printLogin prints what is known of the login of a binding.
func printLogin(out io.Writer, b vault.Binding) {
	if b.Login == "" && b.Renewal != "" {
		fmt.Fprintf(out, "renewal    %s\n", oauth.Describe(b))
	}
	if b.Login == "" {
		return
	}
	scopes := func(s vault.Scopes) string { return termsafe.Line(strings.Join(strings.Fields(string(s)), ", ")) }
	fmt.Fprintf(out, "client     %s\nscopes     %s\n", termsafe.Line(b.Client), scopes(b.Scopes))
	if b.Granted != "" {
		fmt.Fprintf(out, "granted    %s\n", scopes(b.Granted))
	}
	if !b.Expires.IsZero() {
		fmt.Fprintf(out, "expires    %s\n", b.Expires.Format(time.RFC3339))
	}
	fmt.Fprintf(out, "renewal    %s\n", oauth.Describe(b))
}
