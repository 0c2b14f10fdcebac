package stub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// final is the model's text when it has nothing to call.
const final = "All done, says the stub."

// prompt is what the three protocols have in common, as far as the rule below
// asks.
type prompt struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Messages json.RawMessage `json:"messages"` // chat completions, messages
	Input    json.RawMessage `json:"input"`    // responses
	Tools    []tool          `json:"tools"`
}

// tool is a tool in any of the three: a schema under its own name, or inside
// "function".
type tool struct {
	Name        string `json:"name"`
	InputSchema schema `json:"input_schema"`
	Parameters  schema `json:"parameters"`
	Function    struct {
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	} `json:"function"`
	Tools []tool `json:"tools"` // of a namespace, which Codex makes of an MCP server
}

type schema struct {
	Properties map[string]struct {
		Type any `json:"type"`
	} `json:"properties"`
}

// call is the tool call that the model makes. Before it, the model may say something.
type call struct{ name, arguments, namespace, id, says string }

// decide is the whole model: a conversation with a tool's result gets its
// final text; one that offers a shell gets the script's command; any other (a
// title is wanted) gets a short text, which is a nil call as well.
func (s *Server) decide(ctx context.Context, p prompt) *call {
	said := string(p.Messages) + string(p.Input)
	if c := p.wait(); c != nil {
		return c
	}
	if id := p.waiting(); s.script.Again && id != "" {
		c := s.shell(p.Tools)
		c.id, c.says = fmt.Sprint("toolu_again_", strings.Count(said, "tool_result")),
			"I wait for your approval of "+id+", and then send the same request again."
		return c
	}
	for _, result := range []string{`"tool_result"`, `"role":"tool"`, `_call_output"`} {
		if strings.Contains(strings.ReplaceAll(said, `": "`, `":"`), result) {
			if s.script.Hold {
				select {
				case <-s.Release:
				case <-ctx.Done():
				}
			}
			return nil
		}
	}
	if s.script.Command == "" && s.script.Tool == "" {
		return nil
	}
	return s.shell(p.Tools)
}

// shell returns the call of the script's command, or of its tool, with one of these tools; nil if none is for it.
func (s *Server) shell(tools []tool) *call {
	for _, t := range tools {
		name, params := t.Name, t.Parameters
		if t.Function.Name != "" {
			name, params = t.Function.Name, t.Function.Parameters
		} else if t.InputSchema.Properties != nil {
			params = t.InputSchema
		}
		if s.script.Tool != "" {
			if strings.HasSuffix(name, s.script.Tool) {
				return &call{name: name, arguments: "{}", id: "toolu_1"}
			}
			for _, inner := range t.Tools {
				if strings.HasSuffix(inner.Name, s.script.Tool) {
					return &call{name: inner.Name, arguments: "{}", namespace: name, id: "toolu_1"}
				}
			}
			continue
		}
		switch strings.ToLower(name) {
		case "bash", "shell", "exec_command":
			return &call{name: name, arguments: s.arguments(params), id: "toolu_1"}
		}
	}
	return nil
}

// running is in Codex's result for a command that has not ended yet.
var running = regexp.MustCompile(`Process running with session ID (\d+)`)

// wait returns a call that waits for a command, if that is still running by the last result.
func (p prompt) wait() *call {
	var items []struct {
		Type   string
		Output any
	}
	if json.Unmarshal(p.Input, &items) != nil || len(items) == 0 || items[len(items)-1].Type != "function_call_output" {
		return nil
	}
	id := running.FindStringSubmatch(fmt.Sprint(items[len(items)-1].Output))
	if id == nil {
		return nil
	}
	return &call{name: "write_stdin", arguments: `{"session_id":` + id[1] + `,"chars":"","yield_time_ms":60000}`}
}

// approvalID is in the response to a request that waits, as a tool's result quotes it.
var approvalID = regexp.MustCompile(`approval_id\W+([0-9A-Z]{26})`)

// waiting returns the id of the approval that the last message's tool result says is needed, or "".
func (p prompt) waiting() string {
	var messages []json.RawMessage
	if json.Unmarshal(p.Messages, &messages) != nil || len(messages) == 0 {
		return ""
	}
	last := string(messages[len(messages)-1])
	ids := approvalID.FindAllStringSubmatch(last, -1)
	if len(ids) == 0 || !strings.Contains(last, "approval_required") {
		return ""
	}
	return ids[len(ids)-1][1]
}

// arguments fits the command to the tool's own schema.
func (s *Server) arguments(params schema) string {
	args := map[string]any{}
	for name, p := range params.Properties {
		switch {
		case (name == "command" || name == "cmd") && p.Type == "array":
			args[name] = []string{"sh", "-c", s.script.Command}
		case name == "command" || name == "cmd":
			args[name] = s.script.Command
		case name == "description":
			args[name] = "Runs the test's command"
		case name == "timeout" || name == "timeout_ms" || name == "yield_time_ms": // the machine may be at load
			args[name] = 600_000
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // strings marshal
	}
	return string(raw)
}

func readPrompt(w http.ResponseWriter, r *http.Request) (prompt, bool) {
	var p prompt
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		answer(w, http.StatusBadRequest,
			map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": err.Error()}})
		return p, false
	}
	return p, true
}

// stream sends server-sent events, each as soon as it is there.
type stream struct{ w http.ResponseWriter }

func startStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	return stream{w}
}

// event sends v; with a name, it is the event's and v's type.
func (s stream) event(name string, v map[string]any) {
	head := ""
	if name != "" {
		v["type"] = name
		head = "event: " + name + "\n"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of plain values marshal
	}
	say(s.w, head+"data: "+string(raw)+"\n\n")
}

// halves cuts text in two, as models send it in pieces.
func halves(text string) [2]string { return [2]string{text[:len(text)/2], text[len(text)/2:]} }
