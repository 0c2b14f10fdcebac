package sandbox

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/sandbox/native"
)

func newApparmorCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "apparmor",
		Short: "Print the AppArmor profile that --sandbox=native needs on Ubuntu",
		Example: `  aileron sandbox apparmor | sudo tee /etc/apparmor.d/aileron >/dev/null &&
    sudo apparmor_parser -r /etc/apparmor.d/aileron`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			binary, err := os.Executable()
			if err == nil {
				_, err = fmt.Fprint(a.Stdout, native.AppArmorProfile(binary))
			}
			return err
		},
	}
}
