package connectors

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/spec"
)

// ConnectorJSON is one connector and all that it grants.
type ConnectorJSON struct {
	FQN          string            `json:"fqn"`
	Version      string            `json:"version"`
	Hash         string            `json:"hash"`
	Already      bool              `json:"already"` // it was installed before
	Signed       bool              `json:"signed"`  // a signature was verified, by a key that was known
	Signature    *SignatureJSON    `json:"signature,omitempty"`
	Hosts        []string          `json:"hosts"`
	Credential   *CredentialJSON   `json:"credential"` // null: it needs none
	Placeholders []placeholderJSON `json:"placeholders"`
	Intents      []string          `json:"intents"`
	Operations   []operationJSON   `json:"operations"`
}

type CredentialJSON struct {
	Kind   string `json:"kind"`
	Scope  string `json:"scope,omitempty"`
	In     string `json:"in,omitempty"`
	Name   string `json:"name,omitempty"`
	Format string `json:"format,omitempty"`

	// Username is that of Basic credentials whose password is the secret.
	Username string `json:"username,omitempty"`

	OAuth2 *OAuth2JSON `json:"oauth2,omitempty"` // of a connector, not of its operations
}

type placeholderJSON struct {
	Env   string `json:"env"`
	Value string `json:"value"`
}

type operationJSON struct {
	Tool       string          `json:"tool"`
	Operation  string          `json:"operation"`
	Summary    string          `json:"summary,omitempty"`
	Method     string          `json:"method"` // "*": any
	Path       string          `json:"path"`   // "": any
	Hosts      []string        `json:"hosts"`
	Idempotent bool            `json:"idempotent"`
	Approval   string          `json:"approval"` // none, required, or when: see ApprovalWhen
	Query      string          `json:"query"`    // declared (see Parameters) or any
	Upgrade    string          `json:"upgrade,omitempty"`
	Ranges     bool            `json:"ranges,omitempty"`
	Headers    []string        `json:"headers,omitempty"` // request fields that are accepted besides the registered ones
	Packed     bool            `json:"packed,omitempty"`
	Issues     bool            `json:"may_issue_credentials,omitempty"`
	Credential *CredentialJSON `json:"credential"`

	// ApprovalWhen are the inputs, by their place and name, and the values of all of which an approval is needed.
	ApprovalWhen map[string][]string `json:"approval_when,omitempty"`

	// Parameters are the names that a declared query may have.
	Parameters []parameterJSON `json:"parameters,omitempty"`

	Body        string `json:"body,omitempty"` // its kind; "": JSON
	ContentType string `json:"content_type,omitempty"`

	// EscapedSlash has the variables of the path whose value may have one.
	EscapedSlash []string `json:"escaped_slash,omitempty"`

	// OptionalSlash is whether the path may be without the slash at its end.
	OptionalSlash bool `json:"optional_slash,omitempty"`

	// MCP is which tools of a server of MCP it allows; null: it is none.
	MCP     *mcpJSON     `json:"mcp,omitempty"`
	GraphQL *graphQLJSON `json:"graphql,omitempty"`

	// Values are what inputs are limited to, by their names.
	Values map[string][]string `json:"values,omitempty"`
}

// parameterJSON is a name that a query may have.
type parameterJSON struct {
	Name   string `json:"name"`
	Style  string `json:"style,omitempty"`  // of a value that is not one parameter each
	Schema any    `json:"schema,omitempty"` // of the keys behind the name, for deepObject
}

// mcpJSON is what an operation allows of a server of MCP, beside what begins, ends and lists.
type mcpJSON struct {
	Tools   []string `json:"tools"`
	Methods []string `json:"methods"`
}

// graphQLJSON is what an operation allows of an endpoint of GraphQL.
type graphQLJSON struct {
	Type   string   `json:"type"`
	Fields []string `json:"fields"`
	Hashes []string `json:"hashes"`
}

// DescribeSigned is [DescribeConnector] with who published the connector.
func DescribeSigned(c *spec.Connector, by Publisher) ConnectorJSON {
	j := DescribeConnector(c)
	j.Signature = by.Json()
	j.Signed = j.Signature.Status == signatureVerified
	return j
}

func DescribeConnector(c *spec.Connector) ConnectorJSON {
	j := ConnectorJSON{FQN: string(c.FQN), Version: c.Version, Hash: c.Hash, Hosts: HostNames(c.Manifest.Hosts),
		Placeholders: []placeholderJSON{}, Intents: append([]string{}, c.Manifest.Intents...), Operations: []operationJSON{}}
	if need := c.Credential(); need != nil {
		j.Credential = &CredentialJSON{Kind: string(need.Kind), Scope: need.Scope, OAuth2: describeLogin(need.OAuth2)}
	}
	for _, p := range c.Placeholders {
		j.Placeholders = append(j.Placeholders, placeholderJSON(p))
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			j.Operations = append(j.Operations, DescribeOperation(op))
		}
	}
	return j
}

func DescribeOperation(op *spec.Operation) operationJSON {
	j := operationJSON{
		Tool: op.Tool, Operation: op.Name, Summary: op.Summary, Method: AnyMethod(op.Method), Path: op.Path.String(),
		Hosts: HostNames(op.Hosts), Idempotent: op.Idempotent, Approval: op.Approval, Query: "any", Upgrade: op.Upgrade,
		Ranges: op.Ranges, Packed: op.Packed, Issues: op.MayIssueCredentials(), EscapedSlash: op.Path.Slashed(),
		Body: op.Body, ContentType: op.ContentType, OptionalSlash: op.Path.HasOptionalSlash(),
	}
	if op.QueryDeclaredOnly {
		j.Query = "declared"
	}
	for _, p := range op.Headers {
		j.Headers = append(j.Headers, p.String())
	}
	for _, in := range op.Inputs {
		if in.In == spec.InQuery && op.QueryDeclaredOnly {
			p := parameterJSON{Name: in.Name, Style: in.Style.String()}
			if in.Schema != nil && p.Style == "deepObject" {
				p.Schema = in.Schema
			}
			j.Parameters = append(j.Parameters, p)
		}
		if len(in.Values) > 0 && j.Values == nil {
			j.Values = map[string][]string{}
		}
		if len(in.Values) > 0 {
			j.Values[in.Name] = in.Values
		}
	}
	for _, c := range op.When {
		if j.ApprovalWhen == nil {
			j.ApprovalWhen = map[string][]string{}
		}
		j.ApprovalWhen[c.In+"."+c.Name] = c.Values
	}
	if m := op.MCP; m != nil {
		j.MCP = &mcpJSON{append([]string{}, m.Tools...), append([]string{}, m.Methods...)}
	}
	if g := op.GraphQL; g != nil {
		j.GraphQL = &graphQLJSON{g.Type, append([]string{}, g.Fields...), append([]string{}, g.Hashes...)}
	}
	if in := op.Injection; in != nil {
		j.Credential = &CredentialJSON{Kind: string(in.Kind), Scope: in.Scope, In: in.In, Name: in.Name, Format: in.Format,
			Username: in.Username}
	}
	return j
}

func HostNames(hosts []spec.HostPattern) []string {
	names := []string{}
	for _, h := range hosts {
		names = append(names, h.String())
	}
	return names
}

func AnyMethod(m string) string {
	if m == "" {
		return "*"
	}
	return m
}

// PrintConnector prints what a connector grants, for a terminal of so many columns; 0 is none.
func PrintConnector(out io.Writer, c *spec.Connector, by Publisher, columns int) {
	if columns == 0 {
		printConnectorWide(out, c, by)
		return
	}
	var wide strings.Builder
	printConnectorWide(&wide, c, by)
	isNarrow := false
	for line := range strings.Lines(wide.String()) {
		isNarrow = isNarrow || console.DisplayWidth(strings.TrimRight(line, " \n")) > columns
	}
	text := wide.String()
	if before, _, ok := strings.Cut(text, allows); ok && isNarrow {
		var limits strings.Builder
		printLimits(&limits, c)
		text = before + allows + stackedOperations(c, columns) + limits.String()
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(out, console.Fitted(strings.TrimRight(line, " \n"), columns))
	}
}

// allows is the title of the list of operations.
const allows = "\nallows:\n"

// stackedOperations returns the operations of a connector, each with its request below its name.
func stackedOperations(c *spec.Connector, columns int) string {
	var out strings.Builder
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			lines := console.Filled([]string{op.Tool + " " + op.Name, Traits(op)}, columns-2)
			for _, h := range op.Hosts {
				lines = append(lines, "  "+AnyMethod(op.Method)+" "+place(op, h))
			}
			fmt.Fprintf(&out, "  %s\n", strings.Join(lines, "\n  "))
		}
	}
	return out.String()
}

// place returns the URLs of an operation at a host.
func place(op *spec.Operation, h spec.HostPattern) string {
	path := op.Path.String()
	switch {
	case path == "":
		path = " (every path)"
	case op.Path.HasOptionalSlash():
		path = strings.TrimSuffix(strings.TrimSuffix(path, "{$}"), "/") + "[/]"
	}
	return strings.TrimSuffix(h.String(), ":443") + path
}

// printConnectorWide prints what a connector grants, in lines of any length.
func printConnectorWide(out io.Writer, c *spec.Connector, by Publisher) {
	fmt.Fprintf(out, "%s %s\n%s\n\n", c.FQN, c.Version, c.Hash)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "publisher\t%s\n", by.Text())
	if key := by.newKey(); key != "" {
		fmt.Fprintf(w, "new key\t%s\n", key)
	}
	fmt.Fprintf(w, "hosts\t%s\n", strings.Join(HostNames(c.Manifest.Hosts), ", "))
	fmt.Fprintf(w, "credential\t%s\n", credentialText(c))
	for _, fact := range loginFacts(c) {
		fmt.Fprintf(w, "%s\t%s\n", fact.name, fact.text)
	}
	for _, p := range c.Placeholders {
		fmt.Fprintf(w, "placeholder\t%s=%s\n", p.Env, p.Value)
	}
	if fields := requestFields(c); len(fields) > 0 {
		fmt.Fprintf(w, "request fields\t%s\n", strings.Join(fields, ", "))
	}
	_ = w.Flush()
	fmt.Fprint(out, allows)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			for _, h := range op.Hosts {
				fmt.Fprintf(w, "  %s %s\t%s\t%s\t%s\n", op.Tool, op.Name, AnyMethod(op.Method), place(op, h), Traits(op))
			}
		}
	}
	_ = w.Flush()
	printLimits(out, c)
}

// requestFields returns the request fields that the operations with a credential accept beside the registered ones.
func requestFields(c *spec.Connector) (list []string) {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			for _, p := range op.Headers {
				if op.Injection != nil && !slices.Contains(list, p.String()) {
					list = append(list, p.String())
				}
			}
		}
	}
	return list
}

// Traits returns what an operation does besides allowing a request.
func Traits(op *spec.Operation) string {
	var list []string
	for _, in := range op.Inputs {
		if len(in.Values) > 0 {
			list = append(list, limits(in))
		}
	}
	if m := op.MCP; m != nil {
		list = append(list, few("tools of MCP: ", m.Tools), few("methods of MCP: ", m.Methods))
	}
	if g := op.GraphQL; g != nil {
		list = append(list, few(g.Type+" of GraphQL: ", g.Fields), few("stored documents of GraphQL: ", g.Hashes))
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	if in := op.Injection; in != nil && in.Username != "" {
		list = append(list, fmt.Sprintf("%s in %s %s, with the user name %s", in.Kind, in.In, in.Name, in.Username))
	} else if in != nil {
		list = append(list, fmt.Sprintf("%s in %s %s", in.Kind, in.In, in.Name))
	}
	switch op.Approval {
	case spec.ApprovalRequired:
		list = append(list, "needs approval")
	case spec.ApprovalWhen:
		list = append(list, "asks "+op.Asks())
	}
	if op.Upgrade != "" {
		list = append(list, op.Upgrade)
	}
	for _, name := range op.Path.Slashed() {
		list = append(list, name+" with %2F")
	}
	if op.Packed {
		list = append(list, "packed responses, not searched")
	}
	if op.MayIssueCredentials() {
		list = append(list, "may issue credentials, which are not redacted")
	}
	return strings.Join(list, ", ")
}
