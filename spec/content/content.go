// Package content is what an operation allows the content of a request to ask for: [MCP] the messages of the Model
// Context Protocol, and [GraphQL] the documents of GraphQL. It compares names, and reads no content: that is done by
// package judge of the proxy.
//
//	reads := content.GraphQL{Type: "query", Fields: []string{"*"}}
//	reads.AllowsField("mutation", "deleteRepository") // false
package content
