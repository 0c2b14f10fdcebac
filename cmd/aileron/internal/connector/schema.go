package connector

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectorschema"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
)

func newConnectorSchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [connector|manifest]",
		Short: "Print the JSON Schema of a connector's file, for editors",
		Long: "Print the JSON Schema of aileron.connector.v1.json (connector, the default) or of\n" +
			"manifest.toml (manifest), with which editors complete and check the files.",
		Example:   "  aileron connector schema > aileron.connector.v1.schema.json",
		Args:      cli.UsageArgs(cobra.MaximumNArgs(1)),
		ValidArgs: []string{connectorschema.Connector, connectorschema.Manifest},
		RunE: func(_ *cobra.Command, args []string) error {
			name := connectorschema.Connector
			if len(args) > 0 {
				name = args[0]
			}
			if err := oneOfArguments(name, connectorschema.Connector, connectorschema.Manifest); err != nil {
				return err
			}
			text, err := connectorschema.Document(name)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(text)
			return err
		},
	}
}

// oneOfArguments returns a usage error unless an argument is among the known ones.
func oneOfArguments(name string, known ...string) error {
	for _, k := range known {
		if name == k {
			return nil
		}
	}
	return hint.DidYouMean(failure.Usagef("%q is not %s", name, hint.Alternatives(known)), hint.Nearest(name, known))
}
