// Package corpus generates bodies as servers send them, for tests and benchmarks.
//
// [Kinds] lists every kind. Each makes a body of exactly the size that is asked for, the same one for the same seed,
// at tens to hundreds of megabytes per second:
//
//	body := corpus.CodeHost(1, 2<<20)
//
// The text is made up. What counts is the structure: hashes, escapes, URLs, encodings and line ends occur as often,
// and in the same surroundings, as in the responses that the kind is named after. No two records are alike, except
// in "repeated". A body is cut off where its size is reached, so it seldom is a complete document.
//
// The records are templates, in records.go; writer.go fills them.
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
		{"registry", json, records("registry", `{"_id":"some-package","name":"some-package","versions":{`, ",")},
		{"pulls", json, records("pulls", "[", ",")},
		{"packument", json, records("packument", `{"_id":"some-package","name":"some-package","versions":{`, ",")},
		{"chat", json, records("chat", `{"ok":true,"messages":[`, ",")},
		{"pretty-json", json, records("pretty-json", "[\n", ",\n")},
		{"uuids", json, records("uuids", "[", ",")},
		{"markdown", "text/markdown; charset=utf-8", records("markdown", "", "\n\n")},
		{"html", "text/html; charset=utf-8", records("html", page, "")},
		{"script", "text/javascript", records("script", "", "")},
		{"escapes", json, Escapes},
		{"base64", "text/plain", records("base64", "", "")},
		{"base64-lines", "text/plain", records("base64-lines", "", "")},
		{"hex-dump", "text/plain", records("hex-dump", "", "")},
		{"hex", "text/plain", records("hex", "", "")},
		{"events", "text/event-stream", ServerSentEvents},
		{"log", "text/plain; charset=utf-8", records("log", "", "\n")},
		{"random", "application/octet-stream", Random},
		{"repeated", json, records("repeated", "", "")},
	}
}

// CodeHost returns the JSON of a code host's API: an array of issues, commits and pull requests, on one line, with
// hashes of 40 digits, identifiers in base64, URLs with queries and templates, and Markdown with \n, \r\n, \", \u003c.
func CodeHost(seed uint64, size int) []byte { return records("code-host", "[", ",")(seed, size) }

// Escapes returns JSON that is dense in escapes of three syntaxes: \/, %2F and &amp;.
func Escapes(seed uint64, size int) []byte { return records("escapes", "[", ",")(seed, size) }

// ServerSentEvents returns the events of a language model that streams: a few characters in each, some with escapes.
func ServerSentEvents(seed uint64, size int) []byte { return records("events", "", "")(seed, size) }

// Random returns random bytes, as compressed data and images are.
func Random(seed uint64, size int) []byte {
	w := newWriter(seed, size)
	w.b = w.b[:size]
	w.random(w.b)
	return w.b
}

// records returns what makes bodies of the records of a name: first stands before them, and sep between two.
func records(name, first, sep string) func(uint64, int) []byte {
	return func(seed uint64, size int) []byte {
		w := newWriter(seed, size)
		for w.b = append(w.b, first...); len(w.b) < size; w.n++ {
			if w.n > 0 {
				w.b = append(w.b, sep...)
			}
			w.write(name)
		}
		return w.b[:size]
	}
}
