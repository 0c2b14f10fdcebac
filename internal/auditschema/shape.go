package auditschema

import (
	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
)

// shape is what the rows of one event have in the columns that depend on it.
type shape struct {
	what      string   // the fields are of, for the schema
	decisions []string // none: the column is empty
	reasons   []string // none: the column is empty
	anyReason bool     // the reason is that of a command's error
	fields    object
	required  []string // of fields
	declared  bool     // connectors may declare further fields
}

// columns returns the schemas of the columns that depend on the event.
func (s shape) columns(event string) object {
	decision, reason := oneOf("", orEmpty(s.decisions)...), oneOf("", orEmpty(s.reasons)...)
	delete(decision, "description")
	delete(reason, "description")
	if s.anyReason {
		reason = object{"pattern": "^[a-z_]+$"}
	}
	return object{"decision": decision, "reason": reason, "fields": object{"$ref": "#/$defs/" + event}}
}

// orEmpty returns values, or the empty text alone.
func orEmpty(values []string) []string {
	if len(values) == 0 {
		return []string{""}
	}
	return values
}

// object returns the schema of the fields.
func (s shape) object() object {
	properties := object{
		"clock":   oneOf("The time of the row is before that of the row before it.", "backwards"),
		"spilled": trueOnly("The row waited in its session's journal until the log could be written."),
	}
	for name, schema := range s.fields {
		properties[name] = schema
	}
	o := object{"type": "object", "description": s.what, "properties": properties, "additionalProperties": false}
	if s.declared {
		o["additionalProperties"] = text("A field that the connector declares. If it says redact, a salted hash.")
	}
	if len(s.required) > 0 {
		o["required"] = s.required
	}
	return o
}

// shapes returns the shape of every event.
func shapes() map[audit.Event]shape {
	all := exchangeShapes()
	for _, more := range []map[audit.Event]shape{sessionShapes(), logShapes(), changeShapes(), approvalShapes(),
		budgetShapes()} {
		for event, s := range more {
			all[event] = s
		}
	}
	return all
}

// exchangeShapes returns the shapes of requests. Denials that were only counted, and connections without a request,
// have rows of the same events.
func exchangeShapes() map[audit.Event]shape {
	var denials []string
	for _, r := range proxy.Reasons() {
		denials = append(denials, string(r))
	}
	outcomes := append([]string{""}, denials...) // how a response ended early
	request := []string{"request_id"}
	intent := []string{"", "upgrade"} // "upgrade" of a WebSocket, in logs of earlier versions
	return map[audit.Event]shape{
		audit.EventProxyStarted: {what: "Fields of an intent.", decisions: intent, fields: exchange(nil), required: request,
			declared: true},
		audit.EventProxyProxied: {what: "Fields of a request that was sent.", decisions: []string{"proxied", "upgrade"},
			reasons: outcomes, fields: exchange(nil), required: request, declared: true},
		audit.EventProxyRejected: {what: "Fields of an operation's request that was denied.", decisions: []string{"rejected"},
			reasons: denials, fields: exchange(nil), required: request, declared: true},
		audit.EventProxyUnknown: {what: "Fields of an outcome that a killed session took with it; those of the intent too.",
			decisions: intent, reasons: []string{audit.ReasonSessionKilled}, fields: exchange(object{
				"intent_id":  text("The id of the intent's row."),
				"intent_seq": atLeast(1, "The number of the intent's row."),
				"sent":       text("What may have been sent."),
				"not_known":  list(text(""), "What the row cannot have."),
			}), required: []string{"request_id", "intent_id", "intent_seq", "sent", "not_known"}, declared: true},
		audit.EventSandboxPassthrough: {what: "Fields of a request that was forwarded, or of an undecrypted tunnel.",
			decisions: []string{"passthrough", "upgrade"}, reasons: append(outcomes, proxy.ReasonTunnelHost),
			fields: exchange(nil), required: request},
		audit.EventSandboxRejected: {what: "Fields of a denied request that is no operation, or of a number of denials.",
			decisions: []string{"rejected"}, reasons: denials, fields: exchange(counted())},
		audit.EventOperationRejected: {what: "Fields of a call by name that makes no request of its operation.",
			decisions: []string{"rejected"}, reasons: denials, fields: exchange(nil), required: request},
	}
}

// exchange returns the fields that each request may have, and more.
func exchange(more object) object {
	all := object{
		"request_id":              text("Ties the rows of a request together, a ULID."),
		"renewed":                 trueOnly("It was sent once more, as the service did not accept the first token."),
		"redirected":              trueOnly("The client ignored the proxy, and the gateway redirected it."),
		"dropped_headers":         list(text(""), "The names of request fields that were not sent."),
		"dropped_headers_omitted": atLeast(1, "How many names dropped_headers leaves out."),
		"mcp_method":              text("The method of a message of MCP that was judged; response: it is one."),
		"mcp_tool":                text("The tool that such a message calls."),
		"graphql_type":            text("The types of the operations of GraphQL that were judged, with commas: mutation."),
		"graphql_fields":          list(text(""), "The names of the fields at their roots, the first sixteen."),
		"graphql_fields_omitted":  atLeast(1, "How many names graphql_fields leaves out."),
		"graphql_hash":            text("The SHA-256 of the stored document that a request of GraphQL names."),
		"meters": object{"type": "object", "additionalProperties": atLeast(0, ""),
			"description": "What it used up, by the names of meters."},
		"meters_model": matching(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$`,
			"The model that the meters are of, as the response names it."),
		"meters_estimated": list(text(""), "The meters that were estimated."),
		"packed":           text("The kind of packed data in the response, which was searched as bytes."),
		"body_fields":      oneOf("Declared fields of the response could not be read.", "unread"),
		"action":           text("The action that made the call."),
		"action_version":   text("The version of that action."),
		"approval_id":      text("The approval by which it passed, a ULID."),
		"earlier_approvals": list(text(""),
			"Approvals by which it passed before, in their order, where it needed several: those of budgets."),
		"preview_of":      text("The approval that it was fetched for, to be shown to the person who is asked, a ULID."),
		"surface":         oneOf("For which protocol its client made the call, as the client says.", "mcp"),
		"step":            atLeast(1, "Which of the action's calls it is."),
		"upstream_status": text("The status of a response that was not passed on."),
		"boundary":        text("Which boundary denied the call, where it has more than one."),
	}
	for name, schema := range more {
		all[name] = schema
	}
	return all
}

// counted returns the fields of a row that counts requests or connections.
func counted() object {
	return object{
		"requests": atLeast(1, "How many denied requests the row stands for."),
		"reasons": object{"type": "object", "additionalProperties": atLeast(1, ""),
			"description": "How many had each reason."},
		"connections": atLeast(1, "How many connections without a request the row stands for."),
		"hosts":       list(text(""), "The first of their hosts."),
		"ports":       matching("^[0-9]+-[0-9]+$", "The lowest and the highest of their ports."),
		"since":       stamp("When the log could not be written any more."),
	}
}
