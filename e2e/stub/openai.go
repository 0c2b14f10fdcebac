package stub

import "net/http"

// openai is chat completions and responses, both only as streams: the agents
// that are tested ask for nothing else.
func (s *Server) openai() http.Handler {
	mux := http.NewServeMux()
	streamed := func(send func(stream, string, *call)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			p, ok := readPrompt(w, r)
			if !ok {
				return
			}
			if !p.Stream {
				answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "the stub only streams"}})
				return
			}
			send(startStream(w), p.Model, s.decide(r.Context(), p))
		}
	}
	mux.HandleFunc("POST /v1/chat/completions", streamed(streamCompletion))
	mux.HandleFunc("POST /api/v1/chat/completions", streamed(streamCompletion)) // OpenRouter's
	mux.HandleFunc("POST /v1/responses", streamed(streamResponse))
	return mux
}

func streamCompletion(out stream, model string, c *call) {
	chunk := func(choices []any, more map[string]any) {
		v := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_770_000_000, "model": model,
			"choices": choices}
		for k, m := range more {
			v[k] = m
		}
		out.event("", v)
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	finish := "stop"
	if c == nil {
		delta(map[string]any{"role": "assistant", "content": ""}, nil)
		for _, half := range halves(final) {
			delta(map[string]any{"content": half}, nil)
		}
	} else {
		finish = "tool_calls"
		delta(map[string]any{"role": "assistant", "content": nil,
			"tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function",
				"function": map[string]any{"name": c.name, "arguments": ""}}}}, nil)
		for _, half := range halves(c.arguments) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": half}}}},
				nil)
		}
	}
	delta(map[string]any{}, finish)
	chunk([]any{}, map[string]any{"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5,
		"total_tokens": 15}})
	say(out.w, "data: [DONE]\n\n")
}

func streamResponse(out stream, model string, c *call) {
	number := 0
	send := func(name string, v map[string]any) {
		v["sequence_number"] = number
		number++
		out.event(name, v)
	}
	response := func(status string, output []any) map[string]any {
		r := map[string]any{"id": "resp_1", "object": "response", "created_at": 1_770_000_000, "model": model,
			"status": status, "output": output}
		if status == "completed" {
			r["usage"] = map[string]any{"input_tokens": 10, "input_tokens_details": map[string]int{"cached_tokens": 0},
				"output_tokens": 5, "output_tokens_details": map[string]int{"reasoning_tokens": 0}, "total_tokens": 15}
		}
		return map[string]any{"response": r}
	}
	send("response.created", response("in_progress", []any{}))
	send("response.in_progress", response("in_progress", []any{}))
	var done map[string]any
	if c == nil {
		done = sendText(send)
	} else {
		done = sendCall(send, c)
	}
	send("response.output_item.done", map[string]any{"output_index": 0, "item": done})
	send("response.completed", response("completed", []any{done}))
}

// sendCall sends the parts of a function call, and returns it whole.
func sendCall(send func(string, map[string]any), c *call) map[string]any {
	item := func(status, arguments string) map[string]any {
		item := map[string]any{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": c.name,
			"arguments": arguments, "status": status}
		if c.namespace != "" {
			item["namespace"] = c.namespace
		}
		return item
	}
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item("in_progress", "")})
	for _, half := range halves(c.arguments) {
		send("response.function_call_arguments.delta", map[string]any{"item_id": "fc_1", "output_index": 0, "delta": half})
	}
	send("response.function_call_arguments.done",
		map[string]any{"item_id": "fc_1", "output_index": 0, "arguments": c.arguments})
	return item("completed", c.arguments)
}

// sendText sends the parts of a message, and returns it whole.
func sendText(send func(string, map[string]any)) map[string]any {
	part := func(text string) map[string]any {
		return map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
	}
	item := func(status string, content []any) map[string]any {
		return map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}
	}
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"], more["content_index"] = "msg_1", 0, 0
		return more
	}
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item("in_progress", []any{})})
	send("response.content_part.added", at(map[string]any{"part": part("")}))
	for _, half := range halves(final) {
		send("response.output_text.delta", at(map[string]any{"delta": half}))
	}
	send("response.output_text.done", at(map[string]any{"text": final}))
	send("response.content_part.done", at(map[string]any{"part": part(final)}))
	return item("completed", []any{part(final)})
}
