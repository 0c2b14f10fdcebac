package spec

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/content"
)

// readMCP reads mcp. The method, the path and the query must have been read.
func (op *Operation) readMCP(n node) {
	v, has := n.o.Get("mcp")
	if !has {
		return
	}
	m, ok := n.diags.open(v, n.at("mcp"), "tools", "methods")
	if !ok {
		return
	}
	op.MCP = &content.MCP{
		Tools: m.distinct("tools", func(s string) bool {
			name := strings.TrimSuffix(s, "*")
			return s == "*" || content.IsMCPTool(name)
		}, "is neither the name of a tool nor the beginning of names, such as \"search_*\""),
		Methods: m.distinct("methods", func(s string) bool { return slices.Contains(content.DeclarableMethods(), s) },
			"is not one of "+strings.Join(content.DeclarableMethods(), ", ")),
	}
	if len(op.MCP.Tools)+len(op.MCP.Methods) == 0 {
		n.diags.add(n.at("mcp"), "it allows nothing: name tools or methods")
	}
	op.checkJudged(n, "mcp", "POST")
	for i, in := range op.Inputs {
		if in.In == InBody {
			n.diags.add(n.item("inputs", i), "it is in the body, which is a message of MCP")
		}
	}
}

// distinct returns the strings of a list, each of which is valid and there once. why is what an invalid one is.
func (n node) distinct(key string, valid func(string) bool, why string) (list []string) {
	for i, v := range n.list(key, false, maxItems) {
		s, ok := v.(string)
		switch {
		case !ok:
			n.diags.add(n.item(key, i), "it is not a string")
		case len(s) > content.MaxName+1 || !valid(s):
			n.diags.add(n.item(key, i), "%q %s", truncated(s), why)
		case slices.Contains(list, s):
			n.diags.add(n.item(key, i), "%q appears twice", s)
		}
		list = append(list, s)
	}
	return list
}
