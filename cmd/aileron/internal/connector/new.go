package connector

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/graphql"
	"github.com/ALRubinger/aileron/spec/openapi"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

type connectorNewOptions struct {
	Dir, name  string
	host, kind string
	from, path string
	made       openapi.Options // of the document
}

func newConnectorNewCommand(a *cli.App) *cobra.Command {
	opts := &connectorNewOptions{}
	cmd := &cobra.Command{
		Use:   "new DIR",
		Short: "Begin a connector: write files that work, for you to edit",
		Long: "Write a connector's two files, with comments, and a README.md and a .gitignore into\n" +
			"a directory. They pass connector check at once. No file is ever replaced.\n\n" +
			"The connector's name is --name, or that of the Git remote \"origin\" of the directory.\n" +
			"--from makes the operations, inputs, hosts and credential of an OpenAPI 3 document, in\n" +
			"YAML or JSON, or of a GraphQL schema, in SDL or the JSON of an introspection query, and\n" +
			"lists what it left out. Of a large OpenAPI document it asks on a terminal which groups\n" +
			"to take, and which operations wait for an approval: those that may write, unless you\n" +
			"choose otherwise (--groups, --approve). Nothing is fetched.",
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
	f.StringVar(&opts.name, "name", "", "the connector's name, such as github://OWNER/REPOSITORY")
	f.StringVar(&opts.host, "host", "", "the host of the API (default that of the document, or a stand-in)")
	f.StringVar(&opts.kind, "credential", "",
		"bearer, api_key, basic, oauth2 or none (default that of the document, or bearer)")
	f.StringVar(&opts.from, "from", "", "the OpenAPI 3 document or GraphQL schema to make it from")
	f.StringVar(&opts.path, "path", "", "with a GraphQL schema: the path of its endpoint (default /graphql)")
	f.StringArrayVar(&opts.made.Only, "only", nil, "with --from: the operations to make, by tag, operationId or "+
		"\"METHOD /path\", or by field, as in \"mutation create*\"; * stands for any text")
	f.StringSliceVar(&opts.made.Groups, "groups", nil,
		"with --from: the groups of operations to make: tags, or the beginnings of names or paths")
	f.StringArrayVar(&opts.made.Approve, "approve", nil, "with --from: the operations that wait for your approval, "+
		"by name or\n\"METHOD /path\"; * stands for any text (default all that may write)")
	f.BoolVar(&opts.made.ApproveNone, "approve-none", false,
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
	fqn, err := o.fqn(ctx, a)
	if err != nil {
		return err
	}
	made := connectorNewJSON{FQN: string(fqn), Dir: o.Dir, Skipped: []string{}, LeftOut: []string{}}
	c, leftOut, err := o.draft(ctx, a, fqn)
	if err != nil {
		printLeftOut(a, leftOut)
		return err
	}
	files, err := c.Files()
	if err != nil {
		return err
	}
	skipped, err := scaffold.Write(o.Dir, files)
	if err != nil {
		return err
	}
	made.Version, made.Operations = "0.1.0", len(c.Operations)
	made.Skipped, made.LeftOut = append(made.Skipped, skipped...), append(made.LeftOut, leftOut...)
	if a.JSON {
		return a.PrintJSON(made)
	}
	o.report(a, c, made)
	return nil
}

// check returns a usage error for flags that do not go together.
func (o *connectorNewOptions) check() error {
	kinds := append(spec.Kinds(), "none")
	if o.kind != "" {
		if err := cli.OneOf("credential", spec.Kind(o.kind), kinds...); err != nil {
			return err
		}
	}
	chosen := len(o.made.Groups)+len(o.made.Approve) > 0 || o.made.ApproveNone
	if o.from == "" && (len(o.made.Only) > 0 || o.path != "" || chosen) {
		return failure.Usagef("--only, --groups, --approve and --path are for the document that --from names")
	}
	if len(o.made.Approve) > 0 && o.made.ApproveNone {
		return failure.Usagef("--approve names what waits for an approval, and --approve-none nothing: pass one of them")
	}
	return nil
}

// fqn returns the connector's name: that of --name, that of the Git remote, or what a person answers.
func (o *connectorNewOptions) fqn(ctx context.Context, a *cli.App) (spec.FQN, error) {
	name := o.name
	if name == "" {
		if fqn, ok := scaffold.NameFromGit(ctx, o.Dir); ok {
			if !a.JSON {
				a.Infof("aileron: the name is that of the Git remote: %s", fqn)
			}
			return fqn, nil
		}
		if !a.Interactive() {
			return "",
				hint.New(failure.Usagef("the connector has no name: %s is in no Git repository with a remote at github.com or "+
					"gitlab.com", o.Dir), "pass --name github://OWNER/REPOSITORY")
		}
		suggestion := "github://OWNER/" + filepath.Base(o.Dir)
		var err error
		if name, err = a.PromptLine("the connector's name, such as " + suggestion + ":"); err != nil {
			return "", err
		}
	}
	fqn, err := spec.ParseFQN(name)
	if err != nil {
		return "", hint.New(failure.Usage(err), "the name is where it will be published: github://OWNER/REPOSITORY")
	}
	return fqn, nil
}

// draft returns the connector, and what of the document it does not have.
func (o *connectorNewOptions) draft(ctx context.Context, a *cli.App, fqn spec.FQN,
) (c *scaffold.Connector, leftOut []string, err error) {
	host := o.host
	if host == "" && o.from == "" {
		host = "api." + scaffold.ToolName(fqn) + ".example"
	}
	if _, err := spec.ParseHost(host); err != nil && host != "" {
		return nil, nil, hint.New(failure.Usage(fmt.Errorf("read --host: %w", err)), "name a host, as in api.example.com")
	}
	if o.from == "" {
		kind := spec.Kind(cmp.Or(o.kind, string(spec.KindBearer)))
		if kind == "none" {
			kind = ""
		}
		return scaffold.Starter(fqn, host, kind), nil, nil
	}
	data, err := readDocument(o.from)
	if err != nil {
		return nil, nil, err
	}
	o.made.FQN, o.made.Host, o.made.Credential = fqn, host, spec.Kind(o.kind)
	switch {
	case graphql.IsSchema(data) && len(o.made.Groups)+len(o.made.Approve) > 0:
		return nil, nil, failure.Usagef("--groups and --approve are for an OpenAPI document, and --from names a schema")
	case graphql.IsSchema(data):
		c, leftOut, err = graphql.Connector(data,
			graphql.Options{FQN: fqn, Host: host, Path: o.path, Credential: spec.Kind(o.kind), Only: o.made.Only})
	case o.path != "":
		return nil, nil, failure.Usagef("--path is that of a GraphQL schema's endpoint, and --from names none")
	default:
		o.made.Files = openapi.Below(filepath.Dir(o.from))
		if err := connectors.ChooseOperations(ctx, a.Console, data, &o.made); err != nil {
			return nil, nil, err
		}
		c, leftOut, err = openapi.Connector(data, o.made)
	}
	return c, leftOut, failure.OfInput(err, failure.ReasonDocument)
}

// readDocument returns the content of a file, up to a little more than what is read of it.
func readDocument(name string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, failure.OfInput(fmt.Errorf("read the document %s: %w", name, connectors.WithoutPath(err)), "")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, openapi.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the document %s: %w", name, connectors.WithoutPath(err))
	}
	return data, nil
}

// report prints what was written, what was left out, and what to do next.
func (o *connectorNewOptions) report(a *cli.App, c *scaffold.Connector, made connectorNewJSON) {
	fmt.Fprintf(a.Stdout, "wrote %s %s to %s, with %s\n", made.FQN, made.Version, o.Dir,
		hint.Plural(made.Operations, "operation"))
	for _, name := range made.Skipped {
		a.Infof("aileron: %s exists already and is unchanged", filepath.Join(o.Dir, name))
	}
	printLeftOut(a, made.LeftOut)
	writes := len(slices.DeleteFunc(slices.Clone(c.Operations), func(op scaffold.Operation) bool {
		return op.Approval != "required"
	}))
	if writes > 0 {
		a.Infof("approval is required for %s that may write, so you are asked about each request: "+
			"set \"approval\": \"none\" for what an agent may do alone", hint.Plural(writes, "operation"))
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
