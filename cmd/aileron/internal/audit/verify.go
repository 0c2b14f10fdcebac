package audit

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
)

func newAuditVerifyCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	var heads string
	var evidence audit.Evidence
	cmd := &cobra.Command{
		Use:   "verify [FILE.jsonl]",
		Short: "Check the chain of hashes, the heads kept outside the log, and signatures",
		Long: "Check the chain of hashes, every head that is kept outside the log, and the signed\n" +
			"heads, and list what does not match. The exit code is 0 if everything matches, and 1\n" +
			"otherwise. With --head, the log must also have the rows that aileron audit head printed\n" +
			"earlier: a log that was replaced together with all that is kept beside it lacks them.\n\n" +
			"With a file of aileron audit export, its rows are checked instead, and no home is read.\n" +
			"Signatures are then checked with the public keys of --key; --complete allows no gaps.\n\n" +
			"With --db, the database recomputes the hashes of all rows that were shipped to it.",
		Example: "  aileron audit verify --head /mnt/elsewhere/aileron.head",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			return from.Verify(cmd.Context(), heads, evidence, files)
		},
	}
	cmd.Flags().StringVar(&heads, "head", "", "a file with signed heads of aileron audit head; - for standard input")
	cmd.Flags().BoolVar(&evidence.Complete, "complete", false, "the file must have every row up to its last one")
	cmd.Flags().StringArrayVar(&evidence.Keys, "key", nil, "a further public key that signed heads may have")
	return cmd
}
