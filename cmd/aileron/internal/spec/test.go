package spec

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/propose"
)

func newSpecTestCommand(a *cli.App) *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Replay recorded requests against a connector: what would change",
		Long: "Replay the requests of a session, or of rows that were exported, against a connector that\n" +
			"need not be installed, and print what would be allowed and was denied, and the reverse.\n" +
			"Nothing is sent. The exit code is 1 if a verdict would change.",
		Example: "  aileron spec test ./tracker --session 01J…\n  aileron spec test ./tracker --session rows.jsonl",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			candidate, err := connectors.ReadCandidate(args[0], a.Infof)
			if err != nil {
				return err
			}
			r, err := propose.NewReplay(candidate.Connector)
			if err == nil {
				err = r.Of(cmd.Context(), a.Dir, source)
			}
			if err == nil && a.JSON {
				err = a.PrintJSON(r)
			} else if err == nil {
				r.Print(a.Stdout)
			}
			if err == nil && r.Changed() {
				return console.Exit(1)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&source, "session", "", "a session, or a file of rows: aileron audit export --format jsonl")
	_ = cmd.MarkFlagRequired("session")
	return cmd
}
