package stub

import (
	"encoding/json"
	"net/http"
)

// anthropic is the Messages API, streamed or not.
func (s *Server) anthropic() http.Handler {
	mux := http.NewServeMux()
	hello := func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]string{"message": "hello"}) }
	mux.HandleFunc("GET /api/hello", hello)
	mux.HandleFunc("GET /v1/oauth/hello", hello)
	// An organisation without settings of its own.
	mux.HandleFunc("GET /api/claude_code/settings", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"uuid": "1", "checksum": "sha256:0", "settings": map[string]any{}})
	})
	mux.HandleFunc("GET /api/claude_code/policy_limits", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"restrictions": map[string]any{}})
	})
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]int{"input_tokens": 10})
	})
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		p, ok := readPrompt(w, r)
		if !ok {
			return
		}
		call := s.decide(r.Context(), p)
		if !p.Stream {
			reply(w, message(p.Model, call))
			return
		}
		streamMessage(startStream(w), p.Model, call)
	})
	return mux
}

func message(model string, c *call) map[string]any {
	id := "msg_1"
	if c != nil {
		id += c.id // Claude Code joins messages of one id
	}
	m := map[string]any{"id": id, "type": "message", "role": "assistant", "model": model, "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": 10, "output_tokens": 5}}
	if c == nil {
		m["content"], m["stop_reason"] = []any{map[string]any{"type": "text", "text": final}}, "end_turn"
	} else {
		use := map[string]any{"type": "tool_use", "id": c.id, "name": c.name, "input": json.RawMessage(c.arguments)}
		m["content"], m["stop_reason"] = []any{use}, "tool_use"
		if c.says != "" {
			m["content"] = []any{map[string]any{"type": "text", "text": c.says}, use}
		}
	}
	return m
}

func streamMessage(out stream, model string, c *call) {
	start := message(model, c)
	start["content"], start["stop_reason"] = []any{}, nil
	out.event("message_start", map[string]any{"message": start})
	text, stop, index := final, "end_turn", 0
	if c != nil {
		text, stop = c.says, "tool_use"
	}
	block := func(start map[string]any, delta, field, text string) {
		out.event("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, half := range halves(text) {
			out.event("content_block_delta", map[string]any{"index": index,
				"delta": map[string]any{"type": delta, field: half}})
		}
		out.event("content_block_stop", map[string]any{"index": index})
		index++
	}
	if text != "" {
		block(map[string]any{"type": "text", "text": ""}, "text_delta", "text", text)
	}
	if c != nil {
		block(map[string]any{"type": "tool_use", "id": c.id, "name": c.name, "input": map[string]any{}},
			"input_json_delta", "partial_json", c.arguments)
	}
	out.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]int{"output_tokens": 5}})
	out.event("message_stop", map[string]any{})
}
