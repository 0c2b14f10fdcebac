package publishing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/graphql"
	"github.com/ALRubinger/aileron/spec/openapi"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// Draft is a connector that is to be begun.
type Draft struct {
	Dir, Name  string // Name is "": that of the Git remote, or what a person answers
	Host, Kind string
	From, Path string          // the document, and the endpoint of a schema; "": a starter
	Made       openapi.Options // of the document
	Quiet      bool            // print nothing
}

// Drafted is what [Draft.Write] has written.
type Drafted struct {
	FQN        spec.FQN
	Version    string
	Operations int
	Writes     int      // operations that wait for an approval
	Skipped    []string // files that exist already
	LeftOut    []string // what the document has and the connector does not, also with an error
}

// Write writes the files of a connector to begin with. It replaces none.
func (o *Draft) Write(ctx context.Context, ui *console.Console) (made Drafted, err error) {
	if err := o.check(); err != nil {
		return made, err
	}
	if made.FQN, err = o.fqn(ctx, ui); err != nil {
		return made, err
	}
	c, leftOut, err := o.draft(ctx, ui, made.FQN)
	made.LeftOut = leftOut
	if err != nil {
		return made, err
	}
	files, err := c.Files()
	if err != nil {
		return made, err
	}
	if name, text, ok := workflow(ctx, o.Dir, made.FQN); ok {
		files[name] = text
	}
	made.Skipped, err = scaffold.Write(o.Dir, files)
	made.Version, made.Operations = "0.1.0", len(c.Operations)
	for _, op := range c.Operations {
		if op.Approval == spec.ApprovalRequired {
			made.Writes++
		}
	}
	return made, err
}

// chooses reports whether something is chosen that an OpenAPI document alone has.
func (o *Draft) chooses() bool {
	return len(o.Made.Groups)+len(o.Made.Approve)+len(o.Made.Query) > 0 || o.Made.ApproveNone
}

// check returns a usage error for flags that do not go together.
func (o *Draft) check() error {
	if o.From == "" && (len(o.Made.Only) > 0 || o.Path != "" || o.chooses()) {
		return failure.Usagef("--only, --groups, --approve, --approve-none, --query and --path are for the document that " +
			"--from names")
	}
	if len(o.Made.Approve) > 0 && o.Made.ApproveNone {
		return failure.Usagef("--approve names what waits for an approval, and --approve-none nothing: pass one of them")
	}
	return nil
}

// fqn returns the connector's name: that of --name, that of the Git remote, or what a person answers.
func (o *Draft) fqn(ctx context.Context, ui *console.Console) (spec.FQN, error) {
	name := o.Name
	if name == "" {
		if fqn, ok := scaffold.NameFromGit(ctx, o.Dir); ok {
			if !o.Quiet {
				ui.Infof("aileron: the name is that of the Git remote: %s", fqn)
			}
			return fqn, nil
		}
		if !ui.Interactive() {
			return "",
				hint.New(failure.Usagef("the connector has no name: %s is in no Git repository with a remote at github.com or "+
					"gitlab.com", o.Dir), "pass --name github://OWNER/REPOSITORY")
		}
		suggestion := "github://OWNER/" + filepath.Base(o.Dir)
		var err error
		if name, err = ui.PromptLine("the connector's name, such as " + suggestion + ":"); err != nil {
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
func (o *Draft) draft(ctx context.Context, ui *console.Console, fqn spec.FQN,
) (c *scaffold.Connector, leftOut []string, err error) {
	host := o.Host
	if host == "" && o.From == "" {
		host = "api." + scaffold.ToolName(fqn) + ".example"
	}
	if _, err := spec.ParseHost(host); err != nil && host != "" {
		return nil, nil, hint.New(failure.Usage(fmt.Errorf("read --host: %w", err)), "name a host, as in api.example.com")
	}
	if o.From == "" {
		kind := spec.Kind(cmp.Or(o.Kind, string(spec.KindBearer)))
		if kind == "none" {
			kind = ""
		}
		return scaffold.Starter(fqn, host, kind), nil, nil
	}
	data, err := ReadDocument(o.From)
	if err != nil {
		return nil, nil, err
	}
	o.Made.FQN, o.Made.Host, o.Made.Credential = fqn, host, spec.Kind(o.Kind)
	switch {
	case graphql.IsSchema(data) && o.chooses():
		return nil, nil, failure.Usagef("--groups, --approve, --approve-none and --query are for an OpenAPI document, and " +
			"--from names a schema: \"approval\" in the specification says what waits")
	case graphql.IsSchema(data):
		c, leftOut, err = graphql.Connector(data,
			graphql.Options{FQN: fqn, Host: host, Path: o.Path, Credential: spec.Kind(o.Kind), Only: o.Made.Only})
	case o.Path != "":
		return nil, nil, failure.Usagef("--path is that of a GraphQL schema's endpoint, and --from names none")
	default:
		o.Made.Files = openapi.Below(filepath.Dir(o.From))
		if err := connectors.ChooseOperations(ctx, ui, data, &o.Made); err != nil {
			return nil, nil, err
		}
		c, leftOut, err = openapi.Connector(data, o.Made)
	}
	return c, leftOut, failure.OfInput(err, failure.ReasonDocument)
}

// ReadDocument returns the content of a file, up to a little more than what is read of it.
func ReadDocument(name string) ([]byte, error) {
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

// workflow returns the name, from dir, and the text of the workflow that checks and releases the connector: at the top
// of its repository, where GitHub looks for it. There is none for a connector of another forge, and for one that is
// meant for a directory of a repository which is not there.
func workflow(ctx context.Context, dir string, fqn spec.FQN) (name string, text []byte, ok bool) {
	rest, ok := strings.CutPrefix(string(fqn), "github://")
	if !ok {
		return "", nil, false
	}
	below := path.Join(strings.Split(rest, "/")[2:]...)
	name = ".github/workflows/connector.yml"
	if below != "" {
		at, is := scaffold.PathInRepository(ctx, dir)
		if !is || at != below {
			return "", nil, false
		}
		name = ".github/workflows/connector-" + fqn.Service() + ".yml"
	}
	up := ""
	if below != "" {
		up = strings.Repeat("../", strings.Count(below, "/")+1)
	}
	return up + name, scaffold.Workflow(below), true
}
