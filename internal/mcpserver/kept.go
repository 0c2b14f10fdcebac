package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/spec"
)

// restTool is the tool that returns the rest of a text.
const restTool = "read_more"

// maxKept is how many bytes of texts are kept, the newest.
const maxKept = 8 << 20

// kept has the texts of responses that are too long for one result. Its zero value is empty.
type kept struct {
	mu    sync.Mutex
	texts []keptText // the oldest first
	last  int        // the number of the newest
}

type keptText struct {
	id    string
	text  string
	whole bool // nothing of the response is missing
}

// first returns the result with a text, or with its beginning and how to get the rest.
func (k *kept) first(text string, whole bool) *mcp.CallToolResult {
	if len(text) <= maxPiece && whole {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	return k.add(text, whole).from(0)
}

// add keeps a text, and drops the oldest that have no room beside it.
func (k *kept) add(text string, whole bool) keptText {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	t := keptText{strconv.Itoa(k.last), text, whole}
	k.texts = append(k.texts, t)
	size := 0
	for i := len(k.texts) - 1; i >= 0; i-- {
		if size += len(k.texts[i].text); size > maxKept {
			k.texts = append([]keptText(nil), k.texts[i+1:]...)
			break
		}
	}
	return t
}

func (k *kept) find(id string) (keptText, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.texts {
		if t.id == id {
			return t, true
		}
	}
	return keptText{}, false
}

// from returns the result with the piece that begins at an offset of the text.
func (t keptText) from(offset int) *mcp.CallToolResult {
	end := min(offset+maxPiece, len(t.text))
	if end < len(t.text) {
		end -= partial([]byte(t.text[offset:end]))
	}
	piece := strings.ToValidUTF8(t.text[offset:end], "\uFFFD")
	var note string
	switch {
	case end < len(t.text):
		note = fmt.Sprintf("(truncated: these are bytes %d to %d of %d; for the next call %s with %s)",
			offset, end, len(t.text), restTool, restArgs(t.id, end))
	case !t.whole:
		note = fmt.Sprintf("(truncated: of the response, the first %d bytes were read; ask for less of it, by the "+
			"arguments of the operation)", len(t.text))
	default:
		note = fmt.Sprintf("(this is the end: bytes %d to %d of %d)", offset, end, len(t.text))
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: piece}, &mcp.TextContent{Text: note}}}
}

func restArgs(id string, offset int) string { return fmt.Sprintf(`{"id":%q,"offset":%d}`, id, offset) }

// addKept adds the tool that returns the rest of a text, and returns its name.
func (s *Server) addKept() string {
	no := false
	s.sdk.AddTool(&mcp.Tool{
		Name:        restTool,
		Description: "Returns the next piece of a response that a result had only the beginning of. Sends nothing.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"id":{"type":"string","description":"as the truncated result has it"},
			"offset":{"type":"integer","description":"the first byte to return"}},
			"required":["id","offset"],"additionalProperties":false}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.kept.piece(r.Params.Arguments), nil
	})
	return restTool
}

// restInputs are those of the tool.
var restInputs = []spec.Input{
	{Name: "id", Type: "string", Required: true}, {Name: "offset", Type: "integer", Required: true},
}

// piece returns the result of a call of the tool.
func (k *kept) piece(raw []byte) *mcp.CallToolResult {
	args, err := arguments(raw, restInputs)
	if err != nil {
		return failed(err.Error())
	}
	id, _ := args["id"].(string)
	number, _ := args["offset"].(json.Number)
	t, ok := k.find(id)
	offset, err := strconv.Atoi(number.String())
	switch {
	case !ok:
		return failed("args.id: no response is kept under it any more; call the operation again, if it only reads")
	case err != nil, offset < 0, offset >= len(t.text):
		return failed(fmt.Sprintf("args.offset: it must be from 0 to %d", len(t.text)-1))
	}
	return t.from(offset)
}

// arguments reads the arguments of a tool of the server itself, as strictly as the session reads those of an operation.
func arguments(raw []byte, inputs []spec.Input) (map[string]any, error) {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	args, err := spec.ReadObject(raw)
	if err != nil {
		return nil, fmt.Errorf("args: %w", err)
	}
	return args, spec.CheckInputs(inputs, args)
}
