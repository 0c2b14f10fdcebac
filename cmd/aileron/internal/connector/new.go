package connector

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/publishing"
	"github.com/ALRubinger/aileron/spec"
)

type connectorNewOptions struct{ publishing.Draft }

func newConnectorNewCommand(a *cli.App) *cobra.Command {
	opts := &connectorNewOptions{}
	cmd := &cobra.Command{
		Use:   "new DIR",
		Short: "Begin a connector: write files that work, for you to edit",
		Long: "Write a connector's two files, with comments, a README.md, a .gitignore, and for GitHub a\n" +
			"workflow that checks and releases it, into a directory. They pass connector check at\n" +
			"once. No file is ever replaced.\n\n" +
			"The connector's name is --name, or that of the Git remote \"origin\" of the directory.\n" +
			"--from makes the operations, inputs, hosts and credential of a document of OpenAPI 3\n" +
			"or Swagger 2, in YAML or JSON, or of a GraphQL schema, in SDL or the JSON of an\n" +
			"introspection query, and lists what it left out. Of a large OpenAPI document it asks\n" +
			"on a terminal which groups to take, and which operations wait for an approval: those\n" +
			"that may write, unless you choose otherwise (--groups, --approve). Nothing is fetched.",
		Example: "  aileron connector new tracker --name github://acme/tracker --host api.acme.com\n" +
			"  aileron connector new tracker --from openapi.yaml\n" +
			"  aileron connector new tracker --from openapi.json --only issues --only 'GET /v1/projects*'\n" +
			"  aileron connector new tracker --from openapi.json --groups issues,pulls --approve 'DELETE *'\n" +
			"  aileron connector new tracker --from schema.graphql --host api.acme.com",
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			return opts.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Name, "name", "", "the connector's name, such as github://OWNER/REPOSITORY")
	f.StringVar(&opts.Host, "host", "", "the host of the API (default that of the document, or a stand-in)")
	f.StringVar(&opts.Kind, "credential", "",
		"bearer, api_key, basic, oauth2 or none (default that of the document, or bearer)")
	f.StringVar(&opts.From, "from", "", "the OpenAPI or Swagger document, or GraphQL schema, to make it from")
	f.StringVar(&opts.Path, "path", "", "with a GraphQL schema: the path of its endpoint (default /graphql)")
	f.StringArrayVar(&opts.Made.Only, "only", nil, "with --from: the operations to make, by tag, operationId or "+
		"\"METHOD /path\", or by field, as in \"mutation create*\"; * stands for any text")
	f.StringSliceVar(&opts.Made.Groups, "groups", nil,
		"with --from: the groups of operations to make: tags, or the beginnings of names or paths")
	f.StringArrayVar(&opts.Made.Approve, "approve", nil, "with --from: the operations that wait for your approval, "+
		"by name or\n\"METHOD /path\"; * stands for any text (default all that may write)")
	f.StringSliceVar(&opts.Made.Query, "query", nil, "with --from: names that the query of every operation may have, "+
		"which the\ndocument does not declare")
	f.BoolVar(&opts.Made.ApproveNone, "approve-none", false,
		"with --from: none wait, but for exec, attach, proxy and port forwarding, which always do")
	return cmd
}

// connectorNewJSON is what connector new has written.
type connectorNewJSON struct {
	FQN        string   `json:"fqn"`
	Version    string   `json:"version"`
	Dir        string   `json:"dir"`
	Operations int      `json:"operations"`
	Skipped    []string `json:"skipped"`  // files that exist already
	LeftOut    []string `json:"left_out"` // what the document has and the connector does not
}

func (o *connectorNewOptions) run(ctx context.Context, a *cli.App) error {
	if err := o.check(); err != nil {
		return err
	}
	o.Quiet = a.JSON
	made, err := o.Write(ctx, a.Console)
	if err != nil {
		printLeftOut(a, made.LeftOut)
		return err
	}
	if a.JSON {
		return a.PrintJSON(connectorNewJSON{string(made.FQN), made.Version, o.Dir, made.Operations,
			append([]string{}, made.Skipped...), append([]string{}, made.LeftOut...)})
	}
	o.report(a, made)
	return nil
}

// check returns a usage error for flags that do not go together.
func (o *connectorNewOptions) check() error {
	kinds := append(spec.Kinds(), "none")
	if o.Kind != "" {
		if err := cli.OneOf("credential", spec.Kind(o.Kind), kinds...); err != nil {
			return err
		}
	}
	return nil
}

// report prints what was written, what was left out, and what to do next.
func (o *connectorNewOptions) report(a *cli.App, made publishing.Drafted) {
	fmt.Fprintf(a.Stdout, "wrote %s %s to %s, with %s\n", made.FQN, made.Version, o.Dir,
		hint.Plural(made.Operations, "operation"))
	for _, name := range made.Skipped {
		a.Infof("aileron: %s exists already and is unchanged", filepath.Join(o.Dir, name))
	}
	printLeftOut(a, made.LeftOut)
	if made.Writes > 0 {
		a.Infof("approval is required for %s that may write, so you are asked about each request: "+
			"set \"approval\": \"none\" for what an agent may do alone", hint.Plural(made.Writes, "operation"))
	}
	a.Infof("next:")
	for _, step := range []string{"edit " + filepath.Join(o.Dir, spec.SpecFile), "aileron connector check " + o.Dir,
		"aileron connector test " + o.Dir} {
		a.Infof("  %s", step)
	}
}

// printLeftOut prints what a document has and the connector does not.
func printLeftOut(a *cli.App, lines []string) {
	if a.JSON {
		return
	}
	for _, line := range lines {
		a.Infof("left out: %s", line)
	}
}
