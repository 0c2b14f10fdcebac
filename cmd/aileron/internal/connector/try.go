package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/connectortest"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/publishing"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/openapi"
)

type connectorTryOptions struct {
	operation, args, response string
	from                      string
}

func newConnectorTestCommand(a *cli.App) *cobra.Command {
	opts := &connectorTryOptions{}
	cmd := &cobra.Command{
		Use:   "test SRC",
		Short: "Try a connector's operations against a stub of its service",
		Long: "Make a request of the inputs of each operation and send it, through the proxy of a\n" +
			"session, to a stub of the service on this machine, with a new random secret. Report\n" +
			"what arrives otherwise than declared: an operation that another one takes the\n" +
			"requests of, a credential in the wrong place, an audit field that finds nothing.\n" +
			"Nothing is sent to the service itself, and nothing is installed.\n\n" +
			"With --from, compare it with the OpenAPI document instead: each operation, parameter\n" +
			"and body of the document is in the connector, or is listed with the reason.",
		Example: "  aileron connector test ./tracker\n" +
			"  aileron connector test ./tracker --operation issues.get --args '{\"id\": \"7\"}'\n" +
			"  aileron connector test ./tracker --operation issues.get --response issue.json\n" +
			"  aileron connector test ./tracker --from openapi.yaml",
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.operation, "operation", "", "try this operation alone: NAME or \"TOOL NAME\"")
	f.StringVar(&opts.args, "args", "", "with --operation: its arguments, a JSON object (default samples of all inputs)")
	f.StringVar(&opts.response, "response", "",
		"with --operation: file with a JSON response of the service, in which the audit fields must be")
	f.StringVar(&opts.from, "from", "", "the OpenAPI document to compare the connector with")
	return cmd
}

// compare compares the connector with a document.
func (o *connectorTryOptions) compare(a *cli.App, c *spec.Connector) error {
	data, err := publishing.ReadDocument(o.from)
	if err != nil {
		return err
	}
	found, err := openapi.Compare(data, c, openapi.Options{Files: openapi.Below(filepath.Dir(o.from))})
	if err != nil {
		return failure.OfInput(err, failure.ReasonDocument)
	}
	if a.JSON {
		err = a.PrintJSON(found)
	} else {
		_, err = fmt.Fprintln(a.Stdout, strings.Join(found.Lines(), "\n"))
	}
	if n := len(found.Missing); n > 0 && err == nil {
		err = hint.New(fmt.Errorf("compare with %s: %s missing", o.from, hint.Plural(n, "thing")), connectors.SeeConnectors)
	}
	return err
}

func (o *connectorTryOptions) run(ctx context.Context, a *cli.App, src string) error {
	if o.operation == "" && (o.args != "" || o.response != "") {
		return failure.Usagef("--args and --response are for one operation: name it with --operation")
	}
	candidate, err := connectors.ReadCandidate(src, listFaults(a))
	if err != nil {
		return err
	}
	c := candidate.Connector
	if o.from != "" {
		return o.compare(a, c)
	}
	selected := connectortest.Options{Operation: o.operation}
	if o.args != "" {
		selected.Args = []byte(o.args)
	}
	if o.response != "" {
		if selected.Response, err = readResponse(o.response); err != nil {
			return err
		}
	}
	if o.operation != "" && !hasOperation(c, o.operation) {
		return hint.DidYouMean(failure.Usagef("%s has no operation %q", c.FQN, o.operation), hint.Nearest(o.operation,
			operationNames(c)))
	}
	results, err := connectortest.Run(ctx, c, selected)
	if err != nil {
		return fmt.Errorf("test %s: %w", src, err)
	}
	if a.JSON {
		if err := a.PrintJSON(results); err != nil {
			return err
		}
	}
	failed := 0
	for _, r := range results {
		if !a.JSON {
			r.Print(a.Stdout)
		}
		if !r.OK {
			failed++
		}
	}
	if failed > 0 {
		return hint.New(fmt.Errorf("test %s: %d of %s failed", src, failed, hint.Plural(len(results), "operation")),
			connectors.SeeConnectors)
	}
	if !a.JSON {
		a.Infof("aileron: %s arrived as declared, and no secret came back", hint.Plural(len(results), "operation"))
	}
	return nil
}

// readResponse returns a response of at most 1 MiB, which is what audit fields are read from.
func readResponse(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, failure.OfInput(fmt.Errorf("read the response %s: %w", name, connectors.WithoutPath(err)), "")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20+1))
	if err == nil && len(text) > 1<<20 {
		err = errors.New("it is larger than 1 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("read the response %s: %w", name, err)
	}
	return text, nil
}

// operationNames returns the names of a connector's operations.
func operationNames(c *spec.Connector) (names []string) {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			names = append(names, op.Name, t.Name+" "+op.Name)
		}
	}
	return names
}

func hasOperation(c *spec.Connector, name string) bool {
	return slices.Contains(operationNames(c), name)
}
