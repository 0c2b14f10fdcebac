// Package allow has the command aileron allow, which turns a denied request into a reviewed local connector.
package allow

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/local"
)

type AllowOptions struct {
	path         string
	anyQuery     bool
	NoCredential bool
	yes          bool
}

func New(a *cli.App) *cobra.Command {
	opts := &AllowOptions{}
	cmd := &cobra.Command{
		Use:   "allow ID|HOST",
		Short: "Allow what was refused: the request of an audit row, or a host",
		Long: `Allow what no connector allows, in every session of this home from now on.
With the id of a refused request's audit row: requests with its method and path,
or with the pattern of --path. If the connector that names the host injects a
credential, such requests carry a credential of the same kind, which is bound to
the new connector. With a HOST: every request to it, without a credential.
The result is an ordinary connector, local://allowed/HOST: it is shown, you are
asked, and aileron connector remove takes it back.`,
		Example: `  aileron audit list --decision rejected --json     # the ids; the report of a session has them too
  aileron allow 01J…
  aileron allow 01J… --path '/repos/{owner}/{repo}/labels'
  aileron allow docs.example.org
  aileron launch --allow docs.example.org claude    # for one session only`,
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.path, "path", "", "a pattern that has the request's path, such as '/items/{id}'")
	f.BoolVar(&opts.anyQuery, "any-query", false,
		"accept every query name in requests with a credential, and not only requests without a query")
	f.BoolVar(&opts.NoCredential, "no-credential", false, "send such requests without a credential")
	f.BoolVarP(&opts.yes, "yes", "y", false, "allow it without confirmation")
	return cmd
}

func (o *AllowOptions) run(ctx context.Context, a *cli.App, what string) error {
	current, err := connectors.ToMatch(a.Dir, nil)
	if err != nil {
		return err
	}
	made, err := o.connectorFor(ctx, a, what, current)
	if err != nil {
		return err
	}
	if a.Interactive() && !o.yes && !a.JSON && isAllowed(made, current) {
		a.Infof("aileron: %s is allowed already; take that back with: aileron connector remove %s", made.Host,
			local.FQN(made.Host))
		return nil
	}
	dir, err := os.MkdirTemp("", "aileron-allow-")
	if err != nil {
		return fmt.Errorf("make the connector: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := made.Write(dir); err != nil {
		return err
	}
	install := connector.ConnectorInstallOptions{Sources: []string{dir}, Yes: o.yes}
	return install.Run(ctx, a)
}

// connectorFor returns the connector that allows the request of a row, or a host, besides what it allows already.
func (o *AllowOptions) connectorFor(
	ctx context.Context, a *cli.App, what string, current []*spec.Connector,
) (made local.Connector, err error) {
	if audit.IsID(what) {
		row, err := refusedRow(ctx, a, what)
		if err != nil {
			return made, err
		}
		return o.ForRow(row, current)
	}
	if o.path != "" || o.anyQuery || o.NoCredential {
		return made,
			failure.Usagef("--path, --any-query and --no-credential are for the request of an audit row; a HOST is " +
				"allowed as it is")
	}
	return forHost(what, current)
}

// isAllowed reports whether a connector that was made would grant what it grants already.
func isAllowed(made local.Connector, current []*spec.Connector) bool {
	now, err := made.Load()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(current, func(c *spec.Connector) bool {
		return c.FQN == now.FQN && connectors.GrantsSame(c,
			now)
	})
}

// refusedRow returns the row of a request that was refused for want of a connector or an operation.
func refusedRow(ctx context.Context, a *cli.App, id string) (row audit.Row, err error) {
	l, err := a.AuditReader()
	if err != nil {
		return row, err
	}
	if l == nil {
		return row, hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
	}
	defer l.Close()
	if row, err = l.Get(ctx, id); err != nil {
		return row, hint.New(auditlog.Hint(err), "see the ids with: aileron audit list --decision rejected --json")
	}
	switch row.Reason {
	case "host_not_allowed", "operation_not_matched", "query_not_declared":
		return row, nil
	}
	err = fmt.Errorf("allow the request of row %s: it is no request that was refused for want of a connector", id)
	if row.Decision == audit.DecisionRejected {
		err = fmt.Errorf("allow the request of row %s: it was refused for another reason, %s", id, row.Reason)
	}
	return row, hint.New(err, "docs/errors.md explains each reason; see the row with: aileron audit show %s", id)
}

// ForRow returns the connector of a row's host with an operation for its request.
func (o *AllowOptions) ForRow(row audit.Row, current []*spec.Connector) (made local.Connector, err error) {
	if o.path == "" && strings.ContainsAny(row.Path, "{}") { // the sandbox chose it: it must not become a pattern
		return made, hint.New(fmt.Errorf("allow %s %s on %s: the path has braces, which a connector reads as a pattern",
			row.Method, row.Path, row.Host), "give a pattern that has the path with --path")
	}
	made = extend(rowHost(row), current)
	switch {
	case o.NoCredential && made.Credential != nil: // it is one for all that is allowed of the host
		return made, hint.New(fmt.Errorf("allow %s %s on %s without a credential: %s injects one", row.Method, row.Path,
			row.Host, local.FQN(made.Host)), "take that back with: aileron connector remove %s", local.FQN(made.Host))
	case made.Version == FirstVersion && !o.NoCredential:
		made.Credential, made.Scope = credentialOf(row, current)
	}
	// A row has no query. Where nothing secret is sent, its names need no second look.
	anyQuery := o.anyQuery || row.Reason == "query_not_declared" || made.Credential == nil
	op := local.Operation{Method: row.Method, Path: cmp.Or(o.path, row.Path), AnyQuery: anyQuery}
	made.Operations = slices.DeleteFunc(made.Operations, func(other local.Operation) bool {
		return other.Method == op.Method && other.Path == op.Path
	})
	made.Operations = append(made.Operations, op)
	c, err := made.Load()
	if err != nil {
		return made, hint.New(fmt.Errorf("allow %s %s on %s: %w", row.Method, op.Path, row.Host, err),
			"give a pattern that has the path with --path")
	}
	index, err := spec.NewIndex(append(withoutConnector(current, c.FQN), c))
	if err != nil {
		return made, hint.New(fmt.Errorf("allow %s %s on %s: %w", row.Method, op.Path, row.Host, err),
			"allow it without a credential with --no-credential")
	}
	port := uint16(row.Port) //nolint:gosec // it is one
	t := spec.Target{Scheme: row.Scheme, Host: row.Host, Port: port, Method: row.Method, Path: row.Path}
	if m, no := index.Match(t); no != nil || m.Operation.Connector.FQN != c.FQN {
		return made, failure.Usagef("--path %s does not have the request's path, %s", op.Path, row.Path)
	}
	return made, nil
}

// forHost returns the connector that allows a host as it is.
func forHost(host string, current []*spec.Connector) (made local.Connector, err error) {
	h, err := spec.ParseHost(host)
	if err != nil {
		return made, hint.New(failure.Usagef("allow takes the id of an audit row, or a HOST: %v", err),
			"aileron allow --help")
	}
	made = extend(strings.TrimSuffix(h.String(), ":443"), current)
	fqn := local.FQN(made.Host)
	index, err := spec.NewIndex(withoutConnector(current, fqn))
	if err != nil {
		return made, err
	}
	if !h.Wildcard && index.Covers(h.Name, h.Port) {
		return made, hint.New(fmt.Errorf("allow the host %s: an installed connector names it, and decides what is allowed",
			h),
			"allow a refused request with: aileron allow ID")
	}
	for _, e := range catalog.List() {
		if slices.Contains(e.Connector.Manifest.Hosts, h) {
			return made, hint.New(fmt.Errorf("allow the host %s: the catalogue has a connector for it", h),
				"install that: aileron connector install %s", e.Name)
		}
	}
	if made.Credential != nil {
		return made, hint.New(fmt.Errorf("allow the host %s: requests to it carry a credential, which none but listed "+
			"ones may", h),
			"allow a refused request with: aileron allow ID")
	}
	made.Operations = []local.Operation{{}}
	return made, nil
}

// FirstVersion is that of a connector that allows something for the first time.
const FirstVersion = "1.0.0"

// extend returns what was allowed of a host so far, with the next version.
func extend(host string, current []*spec.Connector) local.Connector {
	for _, c := range current {
		if c.FQN == local.FQN(host) {
			made := local.Read(c, host)
			made.Version = nextVersion(c.Version)
			return made
		}
	}
	return local.Connector{Host: host, Version: FirstVersion}
}

// nextVersion returns the version after one of this command's.
func nextVersion(version string) string {
	minor := strings.Split(version, ".")
	n, err := strconv.Atoi(minor[min(1, len(minor)-1)])
	if err != nil {
		return FirstVersion
	}
	return "1." + strconv.Itoa(n+1) + ".0"
}

// rowHost returns the host of a row as a connector names it.
func rowHost(row audit.Row) string {
	if row.Port == 443 || row.Port == 0 {
		return row.Host
	}
	return row.Host + ":" + strconv.Itoa(row.Port)
}

// credentialOf returns how the connector that names the row's host injects its credential there, nil if it does not.
func credentialOf(row audit.Row, current []*spec.Connector) (*spec.Injection, string) {
	isHost := func(h spec.HostPattern) bool { return h.Name == row.Host && int(h.Port) == row.Port }
	for _, c := range current {
		if string(c.FQN) != row.ConnectorFQN || c.Credential() == nil {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if in := op.Injection; in != nil && in.In != "path" && slices.ContainsFunc(op.Hosts, isHost) {
					return in, c.Credential().Scope
				}
			}
		}
	}
	return nil, ""
}

// withoutConnector returns connectors without one of them.
func withoutConnector(connectors []*spec.Connector, fqn spec.FQN) []*spec.Connector {
	return slices.DeleteFunc(slices.Clone(connectors), func(c *spec.Connector) bool { return c.FQN == fqn })
}
