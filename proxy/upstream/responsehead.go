package upstream

import (
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

const (
	maxResponseHead = 256 << 10 // all heads of one exchange
)

// headError is returned for the head of a response that is rejected. It names
// the rule that the head breaks and holds no byte of the head.
type headError struct {
	rule      string
	lookalike bool // it is about a name that a lenient client takes for a framing field's
}

// Error implements error.
func (e *headError) Error() string { return "read the response: its head " + e.rule }

// kind returns the kind of an Error about the head.
func (e *headError) kind() Kind {
	switch {
	case e.lookalike:
		return FramingLookalike
	case e.rule == notHTTP:
		return NotHTTP
	case e.rule == tooLarge:
		return HeadTooLarge
	}
	return HeadMalformed
}

// Rules that are reported with kinds of their own.
const (
	notHTTP  = "does not begin as HTTP/1 does"
	tooLarge = "is larger than 256 KiB"
)

// headPrefix is how a head begins.
const headPrefix = "HTTP/1."

// headValidator validates a head line by line: RFC 9112 sections 4 to 6. Where a
// recipient may repair or reject, it rejects.
type headValidator struct {
	started   bool
	ended     bool
	broken    string // the rule that the head breaks; "": none so far
	lookalike bool   // see headError
	minor     int    // HTTP/1.minor
	fields    int
	status    string
	length    string // "": not announced
	chunked   bool
}

func (h *headValidator) line(l string) {
	if !h.started && !strings.HasPrefix(l, headPrefix) {
		h.broken = notHTTP // whatever else is wrong with it
		return
	}
	l, ok := strings.CutSuffix(l, "\r\n")
	switch {
	case !ok:
		h.broken = "has a line that does not end in CRLF"
	case wire.HasControl(l):
		name, _, _ := strings.Cut(l, ":")
		h.broken, h.lookalike = "has a control character", wire.ResemblesFraming(name)
	case !h.started:
		h.started = true
		h.statusLine(l)
	case len(l) == 0:
		h.end()
	default:
		h.field(l)
	}
}

// statusLine takes "HTTP/1.x NNN", with or without a reason behind it.
func (h *headValidator) statusLine(l string) {
	version, rest, _ := strings.Cut(l, " ")
	status, _, _ := strings.Cut(rest, " ")
	minor, ok := strings.CutPrefix(version, headPrefix)
	if !ok || len(minor) != 1 || !isLength(minor) || len(status) != 3 || !isLength(status) {
		h.broken = notHTTP
		return
	}
	h.minor, h.status = int(minor[0]-'0'), status
}

func (h *headValidator) field(l string) {
	name, value, ok := strings.Cut(l, ":")
	if l[0] == ' ' || l[0] == '\t' || !ok || len(name) == 0 {
		h.broken = "has a line that is no field"
		return
	}
	h.fields++
	value = wire.TrimBlanks(value)
	switch {
	case wire.IsPlainFieldName(name):
	case isFramingLookalike(name):
		h.broken, h.lookalike = "has a framing field with an odd name", true
	case !wire.IsToken(strings.ReplaceAll(name, " ", "_")):
		// "Set-Cookie " passes: the proxy strips it.
		h.broken, h.lookalike = "has a field whose name is no token", wire.IsFramingName(name)
	}
	switch {
	case strings.EqualFold(name, "Content-Length"):
		h.lengthField(value)
	case strings.EqualFold(name, "Transfer-Encoding"):
		h.codingField(value)
	}
}

// isFramingLookalike reports whether name is neither of the two fields that frame
// a body and may be taken for one: with a blank in front of the colon.
func isFramingLookalike(name string) bool {
	if wire.IsPlainFieldName(name) {
		return false
	}
	letters := wire.FoldFieldName(name)
	return letters == "contentlength" || letters == "transferencoding"
}

// lengthField takes a length, or one that is repeated in a list (RFC 9110 section 8.6).
func (h *headValidator) lengthField(list string) {
	for more := true; more; {
		var value string
		value, list, more = strings.Cut(list, ",")
		value = wire.TrimBlanks(value)
		if !isLength(value) || h.length != "" && h.length != value {
			h.broken = "has no clear length"
		}
		h.length = value
	}
}

func (h *headValidator) codingField(value string) {
	if h.chunked || !strings.EqualFold(value, "chunked") {
		h.broken = "has an unknown transfer coding"
	}
	h.chunked = true
}

// end validates the head as a whole.
func (h *headValidator) end() {
	h.ended = true
	interim := h.status[0] == '1'
	switch {
	case h.chunked && h.length != "":
		h.broken = "has a length and a transfer coding"
	case h.chunked && h.minor == 0:
		h.broken = "has a transfer coding in HTTP/1.0"
	case interim && (h.chunked || strings.Trim(h.length, "0") != ""):
		h.broken = "announces a body that its status does not have"
	}
}

// isLength reports whether s is a decimal number that an int64 holds.
func isLength(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 18
}
