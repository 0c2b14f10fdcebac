package sandbox

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/launch"
)

// newSandboxReaperCommand returns the hidden command that aileron starts beside a sandbox, see [launch.ReapSandbox].
// Its name and flags stay: an older aileron whose file was replaced starts this one.
func newSandboxReaperCommand(a *cli.App) *cobra.Command {
	remains := launch.SandboxRemains{}
	cmd := &cobra.Command{
		Use:    "warden",
		Short:  "Wait for the end of a session, and remove its sandbox if it was killed",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if remains.Home, err = a.Home(); err != nil {
				return err
			}
			return launch.ReapSandbox(cmd.Context(), a.Stdin, remains)
		},
	}
	f := cmd.Flags()
	f.StringVar(&remains.Engine, "sandbox", "auto", "the engine: podman or docker")
	f.StringVar(&remains.Session, "session", "", "the session whose sandbox it is")
	f.StringVar(&remains.Service, "service", "", "the engine's process that the session started")
	f.BoolVar(&remains.Terminal, "terminal", false, "restore the terminal of descriptor 3 by the record of descriptor 4")
	return cmd
}

// newHostReaperCommand returns the hidden command that aileron run starts beside its command, see [launch.ReapCommand].
func newHostReaperCommand(a *cli.App) *cobra.Command {
	remains := launch.CommandRemains{}
	cmd := &cobra.Command{
		Use:    "run-warden",
		Short:  "Wait for the end of aileron run, and end its command if it was killed",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE:   func(*cobra.Command, []string) error { return launch.ReapCommand(a.Stdin, remains) },
	}
	f := cmd.Flags()
	f.StringVar(&remains.Session, "session", "", "the session whose command it is")
	f.IntVar(&remains.SID, "sid", 0, "the session of processes that the command belongs to")
	f.IntVar(&remains.PGID, "pgid", 0, "the process group of aileron run")
	f.BoolVar(&remains.Terminal, "terminal", false, "restore the terminal of descriptor 3 by the record of descriptor 4")
	return cmd
}
