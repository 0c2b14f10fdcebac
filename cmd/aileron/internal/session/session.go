// Package session has the commands of aileron session: a file a verb.
package session

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/session"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "See, attach to and end sessions",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newSessionListCommand(a), newSessionShowCommand(a), newSessionStopCommand(a),
		newSessionAttachCommand(a), newSessionLogsCommand(a))
	return cmd
}

// sessionNotes returns what the readers of a session's requests have to know.
func sessionNotes(s session.State) (notes []string) {
	if s.Unknown > 0 {
		notes = append(notes, fmt.Sprintf("unknown outcomes: %d (the session was killed)", s.Unknown))
	}
	switch {
	case s.Attached:
		notes = append(notes, "detached, with a terminal attached")
	case s.Detached && s.State == "running":
		notes = append(notes, "detached")
	}
	switch {
	case s.Open > 0 && s.State == "running":
		notes = append(notes, fmt.Sprintf("requests under way: %d", s.Open))
	case s.Open > 0:
		notes = append(notes, fmt.Sprintf("requests without an outcome: %d "+
			"(the next session's start records them as unknown)", s.Open))
	}
	if s.Spilled > 0 {
		notes = append(notes, fmt.Sprintf("rows in its journal: %d "+
			"(added as soon as the audit log can be written)", s.Spilled))
	}
	return notes
}
