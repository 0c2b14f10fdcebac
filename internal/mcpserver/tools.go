package mcpserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/spec"
)

// maxName is the longest name of a tool (MCP 2025-11-25, Tool names).
const maxName = 128

// namesOf returns the tool names of operations: TOOL.OPERATION, with the connector's short name in front where two
// connectors have the same. Names do not depend on the order of the operations.
func namesOf(ops []api.ListedOperation) []string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = toolName(op.Tool + "." + op.Operation)
	}
	of := func(op api.ListedOperation) string { return path.Base(op.ConnectorFQN) }
	for _, qualify := range []func(api.ListedOperation) string{of, func(op api.ListedOperation) string {
		sum := sha256.Sum256([]byte(op.ConnectorFQN))
		return of(op) + "-" + hex.EncodeToString(sum[:4])
	}} {
		count := map[string]int{}
		for _, name := range names {
			count[name]++
		}
		for i, op := range ops {
			if count[names[i]] > 1 {
				names[i] = toolName(qualify(op) + "." + op.Tool + "." + op.Operation)
			}
		}
	}
	return names
}

// toolName returns a name in the characters that tools may have, and in their length.
func toolName(s string) string {
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-.", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	if len(clean) > maxName {
		sum := sha256.Sum256([]byte(s))
		clean = clean[:maxName-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return clean
}

// toolOf returns the tool of an operation.
func toolOf(name string, op api.ListedOperation) *mcp.Tool {
	return &mcp.Tool{
		Name: name, Description: describe(op), InputSchema: schemaOf(op),
		Annotations: annotationsOf(op),
	}
}

// maxText bounds a text of a connector's author in the description of a tool, in bytes.
const maxText = 1024

// describe returns the description of an operation for a model.
func describe(op api.ListedOperation) string {
	var b strings.Builder
	about := cmp.Or(op.Summary, op.Text, op.Tool+" "+op.Operation)
	b.WriteString(cut(about, maxText))
	if op.Summary != "" && op.Text != "" {
		b.WriteString("\n" + cut(op.Text, maxText))
	}
	fmt.Fprintf(&b, "\n%s https://%s%s", op.Method, hostOf(op), op.Path)
	switch {
	case !op.Bound:
		fmt.Fprintf(&b, "\nIt is denied until the user binds a credential (aileron binding setup %s), or, if the vault is "+
			"locked, unlocks it (aileron vault unlock).", op.ConnectorFQN)
	case op.Credential != "":
		b.WriteString("\nAileron adds the credential: pass none.")
	}
	return b.String()
}

// hostOf returns the host to which a call by name goes.
func hostOf(op api.ListedOperation) string {
	i := max(0, slices.IndexFunc(op.Hosts, func(h string) bool { return !strings.HasPrefix(h, "*.") }))
	return strings.TrimSuffix(op.Hosts[i], ":443")
}

// cut returns at most n bytes of a text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// annotationsOf returns the hints of an operation. They come from its method and its idempotency: what a method does
// not promise (RFC 9110, section 9.2), a client must not rely on.
func annotationsOf(op api.ListedOperation) *mcp.ToolAnnotations {
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, op.Method)
	destructive, open := !safe, true
	return &mcp.ToolAnnotations{
		ReadOnlyHint: safe, DestructiveHint: &destructive, OpenWorldHint: &open,
		IdempotentHint: safe || op.Idempotent || op.Method == http.MethodPut || op.Method == http.MethodDelete,
	}
}

// schema is a JSON Schema (2020-12) of a tool's arguments.
type schema struct {
	Type                 string         `json:"type,omitempty"`
	Properties           map[string]any `json:"properties,omitempty"`
	Required             []string       `json:"required,omitempty"`
	AdditionalProperties *bool          `json:"additionalProperties,omitempty"`
	Description          string         `json:"description,omitempty"`
	Enum                 []string       `json:"enum,omitempty"`
	Minimum              *int           `json:"minimum,omitempty"`
	Maximum              *int           `json:"maximum,omitempty"`
}

// schemaOf returns the schema of the arguments that the session accepts for an operation.
func schemaOf(op api.ListedOperation) any {
	more := op.InputsOmitted > 0
	s := schema{Type: "object", Properties: map[string]any{}, AdditionalProperties: &more}
	for _, in := range op.Inputs {
		p := schema{Type: in.Type, Description: cut(in.Description, maxText)}
		switch fixed := !slices.ContainsFunc(in.Values, func(v string) bool { return strings.HasPrefix(v, "*") }); {
		case len(in.Values) == 0:
		case fixed && in.Type == "string":
			p.Enum = in.Values
		default:
			p.Description = strings.TrimSpace(p.Description + "\nOne of: " + strings.Join(in.Values, ", "))
		}
		s.Properties[in.Name] = p
		if in.Type == spec.TypeFile {
			s.Properties[in.Name] = fileSchema(p.Description)
		} else if in.Type == spec.TypeFiles {
			s.Properties[in.Name] = map[string]any{"type": "array", "description": p.Description, "items": fileSchema("")}
		} else if nested := map[string]any{}; json.Unmarshal(in.Schema, &nested) == nil && len(nested) > 0 {
			if p.Description != "" {
				nested["description"] = p.Description
			}
			s.Properties[in.Name] = nested
		}
		if in.Required {
			s.Required = append(s.Required, in.Name)
		}
	}
	return s
}

// fileSchema returns the schema of an argument that is a file.
func fileSchema(description string) schema {
	no, text := false, func(about string) schema { return schema{Type: "string", Description: about} }
	return schema{Type: "object", Description: description, AdditionalProperties: &no, Properties: map[string]any{
		"text": text("the content, or:"), "base64": text("the content in base64"), "filename": text("without a directory"),
		"content_type": text("its media type"),
	}}
}
