package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/spec"
)

// The tools that stand in for more operations than have a tool each.
const (
	searchTool = "search_operations"
	callTool   = "call_operation"
)

// Of a search.
const (
	defaultFound = 10
	maxFound     = 40
)

var (
	searchInputs = []spec.Input{{Name: "query", Type: "string"}, {Name: "group", Type: "string"},
		{Name: "limit", Type: "integer"}}
	callInputs = []spec.Input{{Name: "operation", Type: "string", Required: true}, {Name: "arguments", Type: "object"}}
)

// addCatalog adds the tools that search and call, for so many operations, and returns their names.
func (s *Server) addCatalog(operations int) []string {
	no, yes := false, true
	s.sdk.AddTool(&mcp.Tool{
		Name: searchTool,
		Description: fmt.Sprintf("Finds the operations that %s can call, of %d: their names, what they do, and the JSON "+
			"Schema of their arguments. Sends nothing.", callTool, operations),
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{
			"query":{"type":"string","description":"words, which an operation must all have in its name, text, path or inputs"},
			"group":{"type":"string","description":"only operations of this group, which the result names, in any case"},
			"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"how many to return; %d if left out"}},
			"additionalProperties":false}`, maxFound, defaultFound)),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.inTurn(ctx, func(ctx context.Context) *mcp.CallToolResult {
			return s.search(ctx, r.Params.Arguments)
		}), nil
	})
	s.sdk.AddTool(&mcp.Tool{
		Name:        callTool,
		Description: "Calls an operation by the name that " + searchTool + " returns, with arguments of its schema.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"operation":{"type":"string","description":"its name"},
			"arguments":{"type":"object","description":"of the operation's schema"}},
			"required":["operation"],"additionalProperties":false}`),
		// It may call any of them.
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes},
	}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.inTurn(ctx, func(ctx context.Context) *mcp.CallToolResult {
			return s.callNamed(ctx, r.Params.Arguments)
		}), nil
	})
	return []string{searchTool, callTool}
}

// foundOperation is an operation in the result of a search.
type foundOperation struct {
	Operation   string               `json:"operation"`
	Group       string               `json:"group,omitempty"`
	Description string               `json:"description"`
	InputSchema any                  `json:"inputSchema"`
	Annotations *mcp.ToolAnnotations `json:"annotations"`
}

// search returns the result of a search.
func (s *Server) search(ctx context.Context, raw []byte) *mcp.CallToolResult {
	args, err := arguments(raw, searchInputs)
	if err != nil {
		return failed(err.Error())
	}
	query, _ := args["query"].(string)
	group, _ := args["group"].(string)
	limit := defaultFound
	if number, has := args["limit"].(json.Number); has {
		if limit, err = strconv.Atoi(number.String()); err != nil || limit < 1 || limit > maxFound {
			return failed(fmt.Sprintf("args.limit: it must be from 1 to %d", maxFound))
		}
	}
	list, err := s.client.operations(ctx, query, group, limit)
	if err != nil {
		return failed(textOf(err))
	}
	result := struct {
		Total      int              `json:"total"`
		Operations []foundOperation `json:"operations"`
		Note       string           `json:"note,omitempty"`
	}{Total: list.Callable, Operations: []foundOperation{}}
	for _, op := range list.Operations {
		if op.Callable {
			result.Operations = append(result.Operations,
				foundOperation{op.FullName(), op.Group, describe(op), schemaOf(op), annotationsOf(op)})
		}
	}
	if more := list.Callable - len(result.Operations); more > 0 {
		result.Note = fmt.Sprintf("%d more match; search with more words", more)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return failed(err.Error())
	}
	return s.kept.first(string(text), true)
}

// callNamed calls the operation that a call names.
func (s *Server) callNamed(ctx context.Context, raw []byte) *mcp.CallToolResult {
	if _, err := arguments(raw, callInputs); err != nil {
		return failed(err.Error())
	}
	var args struct {
		Operation string          `json:"operation"`
		Arguments json.RawMessage `json:"arguments"` // as they are: the session reads them
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return failed(err.Error())
	}
	if !strings.Contains(args.Operation, " ") {
		return failed("args.operation: it is no name that " + searchTool + " returns, such as " +
			"\"github://acme/tracker tracker.issues.get\"")
	}
	list, err := s.client.named(ctx, args.Operation)
	if err != nil {
		return failed(textOf(err))
	}
	for _, op := range list.Operations {
		if op.Callable && op.FullName() == args.Operation {
			return s.call(ctx, op, args.Arguments)
		}
	}
	return failed(fmt.Sprintf("args.operation: the session has no operation %q; search with %s", cut(args.Operation, 200),
		searchTool))
}
