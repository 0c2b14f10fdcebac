// Package corpus generates bodies as servers send them, for tests and benchmarks: the program itself never imports it.
//
// [Kinds] lists every kind. Each makes a body of exactly the size that is asked for, the same one for the same seed,
// at a few hundred megabytes per second:
//
//	body := corpus.CodeHost(1, 2<<20)
//
// The text is made up. What counts is the structure: hashes, escapes, URLs, encodings and line ends occur as often,
// and in the same surroundings, as in the responses that the kind is named after. No two records are alike, except
// in [Repeated]. A body is cut off where its size is reached, so it seldom is a complete document.
package corpus

// Kind is a kind of body.
type Kind struct {
	Name string
	Type string // for Content-Type
	Make func(seed uint64, size int) []byte
}

// Kinds returns every kind, in a fixed order.
func Kinds() []Kind {
	const json = "application/json"
	return []Kind{
		{"code-host", json, CodeHost},
		{"registry", json, Registry},
		{"pretty-json", json, PrettyJSON},
		{"uuids", json, UUIDs},
		{"markdown", "text/markdown; charset=utf-8", Markdown},
		{"html", "text/html; charset=utf-8", HTML},
		{"script", "text/javascript", MinifiedScript},
		{"escapes", json, Escapes},
		{"base64", "text/plain", Base64},
		{"base64-lines", "text/plain", Base64Lines},
		{"hex-dump", "text/plain", HexDump},
		{"hex", "text/plain", PlainHex},
		{"events", "text/event-stream", ServerSentEvents},
		{"log", "text/plain; charset=utf-8", Log},
		{"random", "application/octet-stream", Random},
		{"repeated", json, Repeated},
	}
}

// fill returns size bytes of what record appends, call by call.
func fill(seed uint64, size int, record func(w *writer)) []byte {
	w := newWriter(seed, size)
	for len(w.b) < size {
		record(w)
	}
	return w.b[:size]
}
