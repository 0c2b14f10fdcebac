package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
)

func newAuditHeadCommand(a *cli.App) *cobra.Command {
	var public bool
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the signed head of the log, to keep elsewhere",
		Long: "Print the number and the hash of the newest row, signed by the key of this\n" +
			"installation: a checkpoint (C2SP tlog-checkpoint) in a signed note. Keep it where a\n" +
			"process of this host cannot change it; aileron audit verify --head FILE holds the log\n" +
			"to it later. The file may have several of them, one behind the other.",
		Example: "  aileron audit head | ssh elsewhere 'cat >> aileron.head'",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := signedHead(cmd.Context(), a, public)
			if err != nil {
				return auditlog.Hint(err)
			}
			if a.JSON {
				return a.PrintJSON(map[string]string{"text": text})
			}
			_, err = fmt.Fprint(a.Stdout, text)
			return err
		},
	}
	cmd.Flags().BoolVar(&public, "public-key", false, "print the public key instead")
	return cmd
}

// signedHead returns the signed head of the log, or the public key of this installation.
func signedHead(ctx context.Context, a *cli.App, public bool) (string, error) {
	home, err := a.Home()
	if err != nil {
		return "", err
	}
	if public {
		key, err := audit.PublicKey(filepath.Join(home, "audit.db"))
		return key + "\n", err
	}
	l, err := a.AuditReader()
	if err != nil {
		return "", err
	}
	if l == nil {
		return "", hint.New(errors.New("sign the head of the audit log: there is none yet"),
			"it begins with the first session")
	}
	defer l.Close()
	return l.SignedHead(ctx)
}
