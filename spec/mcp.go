package spec

import (
	"slices"
	"strings"
)

// MCP is which messages of the Model Context Protocol an operation allows, by the names in their bodies. Without an
// entry it allows what [IsProtocolMethod] reports, and responses.
type MCP struct {
	Tools   []string // each the name of a tool, or the beginning of names with "*" at the end
	Methods []string // in addition to tools/call and those of the protocol
}

// protocolMethods are the methods of a client that every operation with MCP allows: they begin and end what a client
// does, or list what a server has. None of them makes a server act or returns its data. Versions of the protocol up to
// 2026-07-28 have them.
var protocolMethods = []string{
	"initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen",
	"tools/list", "prompts/list", "resources/list", "resources/templates/list",
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// declarableMethods are the other methods of a client, but tools/call. An operation has to declare them: they return a
// server's data, or change what it does.
var declarableMethods = []string{
	"resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/get", "completion/complete",
	"tasks/list", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel",
}

// CallTool is the method that calls a tool.
const CallTool = "tools/call"

// IsProtocolMethod reports whether every operation with MCP allows a method.
func IsProtocolMethod(method string) bool { return slices.Contains(protocolMethods, method) }

// AllowsTool reports whether a tool may be called. Names are compared byte by byte.
func (m *MCP) AllowsTool(name string) bool {
	return slices.ContainsFunc(m.Tools, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return name == pattern || wild && strings.HasPrefix(name, prefix)
	})
}

// AllowsMethod reports whether a method other than [CallTool] may be used.
func (m *MCP) AllowsMethod(method string) bool {
	return IsProtocolMethod(method) || slices.Contains(m.Methods, method)
}

// Grants returns what m allows beside the protocol's own methods, in the words of a denial.
func (m *MCP) Grants() (list []string) {
	for _, tool := range m.Tools {
		list = append(list, "tool:"+tool)
	}
	for _, method := range m.Methods {
		list = append(list, "method:"+method)
	}
	return list
}

// maxToolName is the longest name of a tool (MCP 2025-11-25, Tool names).
const maxToolName = 128

// IsMCPTool reports whether s can be the name of a tool of MCP: what the protocol recommends, and the slash and the
// colon of older servers.
func IsMCPTool(s string) bool {
	return s != "" && len(s) <= maxToolName && strings.Trim(s, toolNameBytes) == ""
}

const toolNameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:"

// readMCP reads mcp. The method, the path and the query must have been read.
func (op *Operation) readMCP(n node) {
	v, has := n.o.get("mcp")
	if !has {
		return
	}
	m, ok := n.diags.open(v, n.at("mcp"), "tools", "methods")
	if !ok {
		return
	}
	op.MCP = &MCP{
		Tools: m.distinct("tools", func(s string) bool {
			name := strings.TrimSuffix(s, "*")
			return s == "*" || IsMCPTool(name)
		}, "is neither the name of a tool nor the beginning of names, such as \"search_*\""),
		Methods: m.distinct("methods", func(s string) bool { return slices.Contains(declarableMethods, s) },
			"is not one of "+strings.Join(declarableMethods, ", ")),
	}
	if len(op.MCP.Tools)+len(op.MCP.Methods) == 0 {
		n.diags.add(n.at("mcp"), "it allows nothing: name tools or methods")
	}
	op.checkJudged(n, "mcp")
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
		case len(s) > maxToolName+1 || !valid(s):
			n.diags.add(n.item(key, i), "%q %s", truncated(s), why)
		case slices.Contains(list, s):
			n.diags.add(n.item(key, i), "%q appears twice", s)
		}
		list = append(list, s)
	}
	return list
}
