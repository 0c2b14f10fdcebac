package export

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"

	"github.com/google/martian/v3/har"
)

// HAREntry is an exchange as an entry of a HAR log. The times of [har.Entry] are whole milliseconds: those here replace
// them.
type HAREntry struct {
	har.Entry
	Time    float64    `json:"time"` // milliseconds
	Timings HARTimings `json:"timings"`
	Type    string     `json:"_resourceType,omitempty"` // "websocket", as Chromium has it
	Comment string     `json:"comment,omitempty"`
	Aileron HARAileron `json:"_aileron"`

	Messages []HARMessage `json:"_webSocketMessages,omitempty"` // as Chromium has them
}

// HARMessage is a message of a WebSocket.
type HARMessage struct {
	Type   string  `json:"type"` // "send" by the client, or "receive"
	Time   float64 `json:"time"` // seconds since 1970
	Opcode int     `json:"opcode"`
	Data   string  `json:"data"` // base64 of a binary one (opcode 2)
}

// HARTimings are the phases of an exchange in milliseconds. A row has the total only.
type HARTimings struct {
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}

// HARAileron is what the audit log has of an exchange and HAR has no place for.
type HARAileron struct {
	ID        string         `json:"id"` // of the audit row; the response has it as X-Aileron-Audit-Id
	Seq       int64          `json:"seq,omitempty"`
	IntentSeq int64          `json:"intent_seq,omitempty"`
	Hash      string         `json:"hash,omitempty"`
	Session   string         `json:"session"`
	Event     audit.Event    `json:"event"`
	Source    audit.Source   `json:"source"`
	Decision  audit.Decision `json:"decision"`
	Reason    string         `json:"reason"`
	Outcome   string         `json:"outcome"` // "recorded", "unknown" (the session was killed) or "none" (not exported)
	Rule      string         `json:"rule"`    // what allowed it: the connector's version, tool and operation
	Connector string         `json:"connector"`
	Version   string         `json:"connector_version"`
	Tool      string         `json:"tool"`
	Operation string         `json:"operation"`
	Binding   string         `json:"binding"` // the name of the credential that was injected
	Redacted  int            `json:"redactions"`
	Fields    map[string]any `json:"fields,omitempty"`
	Capture   *HARCapture    `json:"capture,omitempty"`
}

// HARCapture is what a capture has to say about an entry.
type HARCapture struct {
	RequestCut      string       `json:"request_cut,omitempty"`      // why the request's body is not whole
	ResponseCut     string       `json:"response_cut,omitempty"`     // why the response's is not
	MessagesCut     string       `json:"messages_cut,omitempty"`     // why a WebSocket's messages are not all
	RequestDecoded  string       `json:"request_decoded,omitempty"`  // the content coding that the text does not have
	ResponseDecoded string       `json:"response_decoded,omitempty"` // the same
	Trailers        []har.Header `json:"trailers,omitempty"`         // of the response
}

// NewHAREntry returns the entry of an exchange, of its outcome or its intent.
func NewHAREntry(r audit.Row) *HAREntry {
	took := harDuration(&r)
	ms := float64(took.Microseconds()) / 1000
	e := &HAREntry{Time: ms, Timings: HARTimings{Wait: ms}}
	e.ID, e.StartedDateTime, e.Cache = r.ID, r.TS.Add(-took), &har.Cache{}
	if r.Decision == audit.DecisionUpgrade {
		e.Type = "websocket"
	}
	e.Request = &har.Request{Method: r.Method, URL: harURL(&r), HTTPVersion: r.HTTPVersion, Cookies: []har.Cookie{},
		Headers: []har.Header{}, QueryString: []har.QueryString{}, HeadersSize: -1, BodySize: r.RequestBytes}
	e.Response = &har.Response{Status: r.Status, StatusText: http.StatusText(r.Status), HTTPVersion: r.HTTPVersion,
		Cookies: []har.Cookie{}, Headers: []har.Header{},
		Content:     &har.Content{Size: r.ResponseBytes, MimeType: "x-unknown"},
		HeadersSize: -1, BodySize: r.ResponseBytes}
	e.Aileron = harAileron(&r)
	switch e.Aileron.Outcome {
	case outcomeUnknown:
		e.Comment = "the session was killed before the outcome could be recorded"
	case outcomeNone:
		e.Comment = "no outcome among the exported events"
	}
	for _, what := range []string{"requests", "connections"} {
		if n, ok := r.Fields[what].(float64); ok {
			e.Comment = fmt.Sprintf("one event for %.0f %s", n, what)
		}
	}
	return e
}

// The values of HARAileron.Outcome.
const (
	outcomeRecorded = "recorded"
	outcomeUnknown  = "unknown"
	outcomeNone     = "none"
)

func harAileron(r *audit.Row) HARAileron {
	a := HARAileron{
		ID: r.ID, Seq: r.Seq, Hash: r.Hash, Session: r.SessionID, Event: r.Event, Source: r.Source,
		Decision: r.Decision, Reason: r.Reason, Outcome: outcomeRecorded, Connector: r.ConnectorFQN,
		Version: r.ConnectorVersion, Tool: r.Tool, Operation: r.Operation, Binding: r.Binding, Redacted: r.Redactions,
	}
	switch r.Event {
	case audit.EventProxyUnknown:
		a.Outcome = outcomeUnknown
	case audit.EventProxyStarted:
		a.Outcome = outcomeNone
	}
	if r.Operation != "" {
		a.Rule = fmt.Sprintf("%s@%s %s %s", r.ConnectorFQN, r.ConnectorVersion, r.Tool, r.Operation)
	}
	a.Fields = maps.Clone(r.Fields)
	if r.RequestID != "" { // of a row that was not read
		if a.Fields == nil {
			a.Fields = map[string]any{}
		}
		a.Fields["request_id"] = r.RequestID
	}
	return a
}

// harURL returns the URL of the request without a query, which no row has. A target that is not a path is not in it.
// The format requires a URL: a request without a host gets about:blank.
func harURL(r *audit.Row) string {
	if r.Host == "" {
		return "about:blank"
	}
	scheme := cmp.Or(r.Scheme, "https")
	host := escapeURL(r.Host, "-._~")
	if strings.Contains(r.Host, ":") {
		host = "[" + escapeURL(r.Host, "-._~:") + "]"
	}
	if r.Port != 0 && (scheme != "https" || r.Port != 443) && (scheme != "http" || r.Port != 80) {
		host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(r.Port))
	}
	path := "/"
	if strings.HasPrefix(r.Path, "/") {
		path = escapeURL(r.Path, "-._~!$&'()*+,;=:@/%")
	}
	return scheme + "://" + host + path
}

// EscapeQuery percent-encodes what no query of a URL may have (RFC 3986 section 3.4).
func EscapeQuery(s string) string { return escapeURL(s, "-._~!$&'()*+,;=:@/?%") }

// escapeURL percent-encodes what is neither a letter, nor a digit, nor one of the plain characters (RFC 3986
// section 2): a path that ends in ?token=… would be a query for a reader of the log. A percent sign stays, if it is
// plain, before two hexadecimal digits only.
func escapeURL(s, plain string) string {
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if c == '%' && strings.IndexByte(plain, c) >= 0 {
			letter = i+2 < len(s) && isHexDigit(s[i+1]) && isHexDigit(s[i+2])
		} else if strings.IndexByte(plain, c) >= 0 {
			letter = true
		}
		if letter {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
