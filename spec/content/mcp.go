package content

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

// DeclarableMethods returns the other methods of a client, but tools/call. An operation has to declare them: they
// return a server's data, or change what it does.
func DeclarableMethods() []string { return slices.Clone(declarableMethods) }

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

// MaxName is the longest name of a tool (MCP 2025-11-25, Tool names), and of a field of GraphQL that is decided.
const MaxName = 128

// IsMCPTool reports whether s can be the name of a tool of MCP: what the protocol recommends, and the slash and the
// colon of older servers.
func IsMCPTool(s string) bool {
	return s != "" && len(s) <= MaxName && strings.Trim(s, toolNameBytes) == ""
}

const toolNameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:"
