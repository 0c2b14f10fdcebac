// Package auditschema describes the rows of the audit log, as aileron audit export writes them, in a JSON Schema (draft
// 2020-12).
//
// [Document] returns the schema, which docs/audit.schema.json repeats. It is made of the lists of the code: the
// columns of [audit.Row], the events, decisions and sources of package audit, and the reasons of package proxy. What
// the fields of an event are is a table in this package. A test fails for an event without a row there.
//
// The schema is strict: a column, an event, a reason or a field that it does not name is an error. A field that a
// connector declares is a text under a name of the connector's choice.
package auditschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/audit"
)

// ID is the address at which the schema is published.
const ID = "https://raw.githubusercontent.com/ALRubinger/aileron/main/docs/audit.schema.json"

// object is a schema, or a part of one.
type object map[string]any

// Document returns the schema as indented JSON. It fails if an event has no fields in this package.
func Document() ([]byte, error) {
	rules, defs := []object{}, object{}
	for _, event := range audit.Events() {
		s, ok := shapes()[event]
		if !ok {
			return nil, fmt.Errorf("the event %s has no shape", event)
		}
		name := string(event)
		defs[name] = s.object()
		rules = append(rules, object{
			"if":   object{"properties": object{"event": object{"const": name}}, "required": []string{"event"}},
			"then": object{"properties": s.columns(name)},
		})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID,
		"title":       "A row of the audit log of aileron",
		"description": "A line of aileron audit export --format jsonl, or the object of aileron audit show --json.",
		"type":        "object", "properties": columns(), "required": slices.Sorted(maps.Keys(columns())),
		"additionalProperties": false, "allOf": rules, "$defs": defs,
	})
	return out.Bytes(), err
}

// columns returns the schema of each column, for rows of any event.
func columns() object {
	var events []string
	for _, event := range audit.Events() {
		events = append(events, string(event))
	}
	decisions := []string{""}
	for _, d := range audit.Decisions() {
		decisions = append(decisions, string(d))
	}
	var sources []string
	for _, s := range audit.Sources() {
		sources = append(sources, string(s))
	}
	return object{
		"seq":               atLeast(1, "The number of the row. It is never used again."),
		"id":                matching("^[0-7][0-9A-HJKMNP-TV-Z]{25}$", "The id of the row, a ULID."),
		"ts":                stamp("When it happened, in UTC."),
		"event":             oneOf("What happened.", events...),
		"session_id":        text("The session, a ULID. Empty: a command outside any session."),
		"source":            oneOf("Where the row came from.", sources...),
		"decision":          oneOf("What became of the request. Empty: the row is no outcome of a request.", decisions...),
		"reason":            text("Why it was denied, or ended early; empty: it was not, or did not."),
		"connector_fqn":     text("The connector that allowed the request, or that names its host."),
		"connector_version": text("The version of the connector."),
		"tool":              text("The tool of the operation."),
		"operation":         text("The operation that allowed the request."),
		"binding":           text("The name of the credential that was used. Never its value."),
		"method":            text("The method of the request."),
		"scheme":            oneOf("The scheme of the request.", "", "http", "https"),
		"host":              text("The host of the request, without its port."),
		"port":              between(0, 65535, "The port of the host; 0: none."),
		"path": text("The path without the query. That of a denied request ends at its first character that " +
			"is not plain."),
		"http_version":   text("The version that the client spoke, such as HTTP/1.1."),
		"status":         between(0, 999, "The status of the response; 0: none."),
		"request_bytes":  atLeast(0, "The bytes of the request's body."),
		"response_bytes": atLeast(0, "The bytes of the response's body."),
		"redactions":     atLeast(0, "How many occurrences of secrets were redacted from the response."),
		"duration_us":    atLeast(0, "The microseconds from the request to its outcome."),
		"fields":         object{"type": "object", "description": "What else is known, depending on the event."},
		"prev_hash":      matching("^[0-9a-f]{64}$", "The hash of the row before; of the first row, 64 zeros."),
		"hash":           matching("^[0-9a-f]{64}$", "The SHA-256 of prev_hash and the row."),
	}
}

func text(what string) object { return object{"type": "string", "description": what} }

func matching(pattern, what string) object {
	return object{"type": "string", "pattern": pattern, "description": what}
}

func stamp(what string) object {
	return object{"type": "string", "format": "date-time",
		"pattern":     "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]+)?Z$",
		"description": what}
}

func oneOf(what string, values ...string) object {
	return object{"type": "string", "enum": values, "description": what}
}

func atLeast(least int, what string) object {
	return object{"type": "integer", "minimum": least, "description": what}
}

func between(least, most int, what string) object {
	return object{"type": "integer", "minimum": least, "maximum": most, "description": what}
}

// trueOnly is a field that is true, or absent.
func trueOnly(what string) object { return object{"const": true, "description": what} }

func list(item object, what string) object {
	return object{"type": "array", "items": item, "description": what}
}
