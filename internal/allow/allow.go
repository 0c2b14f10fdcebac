// Package allow makes the local connector that allows what was refused: [Operation.ForRow] the request of an audit row,
// [ForHost] a host. package spec/local has its files.
package allow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/local"
)

// Operation is how the request of an audit row is allowed.
type Operation struct {
	Path         string // a pattern that has the request's path; "": the path itself
	AnyQuery     bool   // of requests with a credential, too
	NoCredential bool
}

// IsRow reports whether a text is the id of an audit row, or the beginning of one as lists show it.
func IsRow(text string) bool {
	_, _, fits := audit.PrefixTimes(strings.ToUpper(text))
	return audit.IsID(text) || fits && len(text) >= shortID
}

// shortID is the length from which the beginning of an id is taken for one. It is 48 bits of its time.
const shortID = 10

// RefusedRow returns the row of a request that was refused for want of a connector or an operation, by the beginning of
// its id.
func RefusedRow(ctx context.Context, d *home.Dir, id string) (row audit.Row, err error) {
	l, err := d.AuditReader()
	if err != nil {
		return row, err
	}
	if l == nil {
		return row, hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
	}
	defer l.Close()
	rows, err := l.Find(ctx, id, 2)
	if len(rows) > 1 {
		return row, failure.Usagef("allow the request of row %s: several ids begin so; write more of one", id)
	}
	if err == nil {
		row = rows[0]
	} else {
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
	if help := contentHint(row); help != "" {
		return row, hint.New(err, "%s", help)
	}
	return row, hint.New(err, "docs/errors.md explains each reason; see the row with: aileron audit show %s", id)
}

// contentHint returns what helps where an operation's judgement of the body refused a request: no local connector can,
// because the operation takes precedence on its path. It is "" for any other row.
func contentHint(row audit.Row) string {
	if row.Reason != "content_not_allowed" {
		return ""
	}
	what := `what it may ask for, in "graphql": {"type", "fields"}`
	if tool, ok := row.Fields["mcp_tool"].(string); ok {
		what = "the tool " + strconv.Quote(tool) + `, in "mcp": {"tools": […]}`
	} else if _, ok := row.Fields["mcp_method"]; ok {
		what = `the tools of its server, in "mcp": {"tools": […]}`
	}
	return fmt.Sprintf("the operation %s of %s decides that by the body, and aileron allow adds nothing to it; name "+
		"there %s, and install the connector's next version (aileron connector show %[2]s; docs/connectors.md)",
		row.Operation, row.ConnectorFQN, what)
}

// IsAllowed reports whether a connector that was made would grant what it grants already.
func IsAllowed(made local.Connector, current []*spec.Connector) bool {
	now, err := made.Load()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(current, func(c *spec.Connector) bool {
		return c.FQN == now.FQN && connectors.GrantsSame(c, now)
	})
}

// ForRow returns the connector of a row's host with an operation for its request.
func (o Operation) ForRow(row audit.Row, current []*spec.Connector) (made local.Connector, err error) {
	if o.Path == "" && strings.ContainsAny(row.Path, "{}") { // the sandbox chose it: it must not become a pattern
		return made, hint.New(fmt.Errorf("allow %s %s on %s: the path has braces, which a connector reads as a pattern",
			row.Method, row.Path, row.Host), "give a pattern that has the path with --path")
	}
	made = extend(rowHost(row), current)
	switch {
	case o.NoCredential && made.Credential != nil: // it is one for all that is allowed of the host
		return made, hint.New(fmt.Errorf("allow %s %s on %s without a credential: %s injects one", row.Method, row.Path,
			row.Host, local.FQN(made.Host)), "take that back with: aileron connector remove %s", local.FQN(made.Host))
	case made.Version == firstVersion && !o.NoCredential:
		if c, in := credentialOf(row, current); c != nil {
			made.Credential, made.Scope, made.Login = in, c.Credential().Scope, c.Credential().OAuth2
		}
	}
	// A row has no query. Where nothing secret is sent, its names need no second look.
	anyQuery := o.AnyQuery || row.Reason == "query_not_declared" || made.Credential == nil
	op := local.Operation{Method: row.Method, Path: cmp.Or(o.Path, row.Path), AnyQuery: anyQuery}
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

// ForHost returns the connector that allows a host as it is.
func ForHost(host string, current []*spec.Connector) (made local.Connector, err error) {
	h, err := spec.ParseHost(host)
	if err != nil {
		usage := failure.Usagef("allow takes the id of an audit row, or a HOST: %v", err)
		if _, number := strconv.ParseUint(host, 10, 64); number == nil {
			return made, hint.New(usage, "if %s is a port, name the host too, as in example.com:8443; "+
				"if it is a row, write its id: aileron audit list --decision rejected", host)
		}
		return made, hint.New(usage, "aileron allow --help")
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
		if e.Names(h) {
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

// firstVersion is that of a connector that allows something for the first time.
const firstVersion = "1.0.0"

// extend returns what was allowed of a host so far, with the next version.
func extend(host string, current []*spec.Connector) local.Connector {
	for _, c := range current {
		if c.FQN == local.FQN(host) {
			made := local.Read(c, host)
			made.Version = nextVersion(c.Version)
			return made
		}
	}
	return local.Connector{Host: host, Version: firstVersion}
}

// nextVersion returns the version after one of this command's.
func nextVersion(version string) string {
	minor := strings.Split(version, ".")
	n, err := strconv.Atoi(minor[min(1, len(minor)-1)])
	if err != nil {
		return firstVersion
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

// credentialOf returns the connector that names the row's host, and how it injects its credential there; nil if it does
// not.
func credentialOf(row audit.Row, current []*spec.Connector) (*spec.Connector, *spec.Injection) {
	isHost := func(h spec.HostPattern) bool { return h.Name == row.Host && int(h.Port) == row.Port }
	for _, c := range current {
		if string(c.FQN) != row.ConnectorFQN || c.Credential() == nil {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if in := op.Injection; in != nil && in.In != "path" && slices.ContainsFunc(op.Hosts, isHost) {
					return c, in
				}
			}
		}
	}
	return nil, nil
}

// withoutConnector returns connectors without one of them.
func withoutConnector(connectors []*spec.Connector, fqn spec.FQN) []*spec.Connector {
	return slices.DeleteFunc(slices.Clone(connectors), func(c *spec.Connector) bool { return c.FQN == fqn })
}
