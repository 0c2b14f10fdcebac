package capture

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/google/martian/v3/har"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// sessionToken stands for the token of the session, which opens its API.
const sessionToken = "[session token]"

// headOnly is an entry without what appendTo writes by itself.
type headOnly struct {
	*export.HAREntry
	Request  *struct{} `json:"request,omitempty"`
	Response *struct{} `json:"response,omitempty"`
}

// postData is a request's body without its text.
type postData struct {
	MimeType string      `json:"mimeType"`
	Params   []har.Param `json:"params"`
}

// responseHead is a response without what appendTo writes by itself.
type responseHead struct {
	*har.Response
	Content *struct{} `json:"content,omitempty"`
}

// appendTo appends the exchange as an entry: that of its row, with heads and bodies.
func (e *ended) appendTo(out []byte, t *text) []byte {
	entry := export.NewHAREntry(e.Row)
	entry.StartedDateTime = e.began.UTC() // the row gets its time in the log
	said := &export.HARCapture{}
	entry.Aileron.Capture = said
	e.cleanRow(entry)
	out = e.appendRequest(append(out, `{"request":`...), entry, t)
	out = e.appendResponse(append(out, `,"response":`...), entry, t)
	if e.messages != nil {
		entry.Messages, said.MessagesCut = e.messages.entries(e.sets()), e.messages.cut
	}
	rest := appendJSON(nil, headOnly{HAREntry: entry})
	return append(append(out, ','), rest[1:]...)
}

// cleanRow redacts the session's secrets in what the row has of the client and the upstream.
func (e *ended) cleanRow(entry *export.HAREntry) {
	entry.Request.Method = e.clean(entry.Request.Method)
	for name, value := range entry.Aileron.Fields {
		if text, ok := value.(string); ok {
			entry.Aileron.Fields[name] = e.clean(text)
		}
	}
}

// credential returns what the file has in the credential's slot.
func (e *ended) credential() string { return "[credential " + e.Row.Binding + "]" }

// injected reports whether a credential was put into the slot.
func (e *ended) injected(in string) bool { return e.Row.Binding != "" && e.Slot.In == in }

// sets are what to look for: the secrets, and the token of the session.
func (e *ended) sets() []*scrub.Set {
	sets := make([]*scrub.Set, 0, 2)
	for _, set := range []*scrub.Set{e.Secrets, e.file.token} {
		if set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}

// clean redacts the session's secrets in a text.
func (e *ended) clean(text string) string {
	for _, set := range e.sets() {
		text, _ = set.Text(text)
	}
	return text
}

// cleanAll redacts them in fields, values across fields included.
func (e *ended) cleanAll(fields []har.Header) []har.Header {
	h := http.Header{}
	for _, f := range fields {
		h[f.Name] = append(h[f.Name], f.Value)
	}
	hits := 0
	for _, set := range e.sets() {
		hits += set.Header(h)
	}
	if hits == 0 {
		return fields
	}
	return headers(h)
}

func (e *ended) appendRequest(out []byte, entry *export.HAREntry, t *text) []byte {
	r, said := entry.Request, entry.Aileron.Capture
	r.Headers = e.requestFields()
	r.Cookies = requestCookies(r.Headers)
	r.URL, r.QueryString = e.url(r.URL)
	if e.up == nil || e.up.n == 0 {
		return appendJSON(out, r)
	}
	body := t.of(e.up, valueOf(r.Headers, "Content-Encoding"), e.sets())
	said.RequestCut, said.RequestDecoded = body.cut, body.decoded
	out = append(open(appendJSON(out, r)), `"postData":`...)
	out = open(appendJSON(out, postData{MimeType: valueOf(r.Headers, "Content-Type"), Params: []har.Param{}}))
	return append(appendText(out, body.data), "}}"...)
}

// requestFields returns the fields as the client sent them, with the name of the credential in its slot.
func (e *ended) requestFields() []har.Header {
	fields := slices.Clone(e.request)
	for i := range fields {
		if fields[i].Name == "Proxy-Authorization" {
			fields[i].Value = sessionToken
		}
	}
	fields = e.cleanAll(fields)
	if !e.injected("header") {
		return fields
	}
	name := http.CanonicalHeaderKey(e.Slot.Name)
	fields = slices.DeleteFunc(fields, func(f har.Header) bool { return f.Name == name })
	return append(fields, har.Header{Name: name, Value: e.credential()})
}

// url returns the URL with its query, and the query's pairs. plain is the URL as the row has it.
func (e *ended) url(plain string) (string, []har.QueryString) {
	if e.injected("path") && e.Slot.Replace != nil {
		if path, ok := e.Slot.Replace(e.Row.Path, e.Slot.Name, url.PathEscape(e.credential())); ok {
			plain = strings.TrimSuffix(plain, e.Row.Path) + path
		}
	}
	_, query, has := strings.Cut(e.target, "?")
	pairs := []har.QueryString{}
	var parts []string
	// Before it is decoded too: a plus sign is a space then, and a secret with one is not found any more.
	for part := range strings.SplitSeq(e.clean(query), "&") {
		name, value, _ := strings.Cut(part, "=")
		name, value = unescape(name), unescape(value)
		if part == "" || e.injected("query") && name == e.Slot.Name {
			continue
		}
		parts = append(parts, part)
		pairs = append(pairs, har.QueryString{Name: e.clean(name), Value: e.clean(value)})
	}
	if e.injected("query") {
		parts = append(parts, url.QueryEscape(e.Slot.Name)+"="+url.QueryEscape(e.credential()))
		pairs = append(pairs, har.QueryString{Name: e.Slot.Name, Value: e.credential()})
	}
	text := e.clean(plain)
	if has || len(parts) > 0 {
		text += "?" + export.EscapeQuery(e.clean(strings.Join(parts, "&")))
	}
	return text, pairs
}

// unescape decodes a part of a query, and returns one that cannot be decoded as it is.
func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

func (e *ended) appendResponse(out []byte, entry *export.HAREntry, t *text) []byte {
	r, said := entry.Response, entry.Aileron.Capture
	r.Headers = e.cleanAll(e.response)
	if r.Headers == nil {
		r.Headers = []har.Header{}
	}
	r.Cookies = responseCookies(r.Headers)
	if e.code != 0 {
		r.Status, r.StatusText = e.code, http.StatusText(e.code)
	}
	if e.status != "" {
		r.StatusText = e.clean(e.status)
	}
	r.RedirectURL = valueOf(r.Headers, "Location")
	if kind := valueOf(r.Headers, "Content-Type"); kind != "" {
		r.Content.MimeType = kind
	}
	said.Trailers = e.cleanAll(e.trailers)
	body := t.of(&e.down, valueOf(r.Headers, "Content-Encoding"), e.sets())
	if said.ResponseCut, said.ResponseDecoded = body.cut, body.decoded; body.cut == "" && e.endedEarly() {
		said.ResponseCut = "it ended early: " + e.Row.Reason
	}
	if said.ResponseCut != "" {
		entry.Comment = strings.TrimPrefix(entry.Comment+"; the response's body is not whole", "; ")
	}
	if body.decoded != "" {
		r.Content.Size = int64(len(body.data))
	}
	out = append(open(appendJSON(out, responseHead{Response: r})), `"content":`...)
	out = appendJSON(out, r.Content)
	if len(body.data) > 0 {
		out = append(appendText(open(out), body.data), '}')
	}
	return append(out, '}')
}

// endedEarly reports whether the response was sent, but not to its end.
func (e *ended) endedEarly() bool {
	return e.response != nil && e.Row.Reason != "" && e.messages == nil &&
		(e.Row.Decision == audit.DecisionProxied || e.Row.Decision == audit.DecisionPassthrough)
}

// valueOf returns the first value of a field.
func valueOf(fields []har.Header, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
