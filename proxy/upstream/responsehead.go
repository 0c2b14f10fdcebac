package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

const (
	maxResponseHead = 256 << 10 // all heads of one exchange
	maxInterim      = 5         // responses before the final one
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
	case e.rule == tooLarge, e.rule == interimOnly:
		return HeadTooLarge
	}
	return HeadMalformed
}

// Rules that are reported with kinds of their own.
const (
	notHTTP     = "does not begin as HTTP/1 does"
	tooLarge    = "is larger than 256 KiB"
	interimOnly = "does not come after five interim ones"
)

// headPrefix is how a head begins.
const headPrefix = "HTTP/1."

// readResponse reads the final response's head.
func (pc *persistConn) readResponse(r *http.Request, a *attempt) (*http.Response, error) {
	for range maxInterim {
		if _, err := pc.r.Peek(1); err != nil {
			return nil, err
		}
		a.gotByte.Store(true)
		if err := pc.checkHead(); err != nil {
			return nil, err
		}
		res, err := http.ReadResponse(pc.r, r)
		if err != nil {
			return nil, err
		}
		interim := res.StatusCode >= http.StatusContinue && res.StatusCode < http.StatusOK
		if !interim || res.StatusCode == http.StatusSwitchingProtocols {
			return res, nil
		}
	}
	return nil, &headError{rule: interimOnly}
}

// checkHead waits for a whole head and validates it before net/http parses it.
// It takes nothing from pc.r, whose buffer grows with the head.
func (pc *persistConn) checkHead() error {
	var h headValidator
	for start, seen := 0, 0; ; {
		buf, err := pc.peekBeyond(seen)
		if err != nil {
			return err
		}
		for n := bytes.IndexByte(buf[seen:], '\n'); n >= 0; n = bytes.IndexByte(buf[seen:], '\n') {
			seen += n + 1
			h.line(buf[start:seen])
			start = seen
			if h.broken != "" {
				return &headError{h.broken, h.lookalike}
			}
			if h.ended {
				return nil
			}
		}
		seen = len(buf)
		if start == 0 && !bytes.HasPrefix(buf, []byte(headPrefix)[:min(seen, len(headPrefix))]) {
			return &headError{rule: notHTTP}
		}
	}
}

// peekBeyond returns what has come, once that is more than seen bytes.
func (pc *persistConn) peekBeyond(seen int) ([]byte, error) {
	if seen >= maxResponseHead {
		return nil, &headError{rule: tooLarge}
	}
	if seen == pc.r.Size() {
		whole, _ := pc.r.Peek(seen)
		pc.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(whole)), pc), 2*seen)
	}
	if _, err := pc.r.Peek(seen + 1); err != nil {
		return nil, err
	}
	return pc.r.Peek(pc.r.Buffered())
}

// headValidator validates a head line by line: RFC 9112 sections 4 to 6. Where a
// recipient may repair or reject, it rejects.
type headValidator struct {
	started   bool
	ended     bool
	broken    string // the rule that the head breaks; "": none so far
	lookalike bool   // see headError
	http10    bool
	status    string
	length    string // "": not announced
	chunked   bool
}

func (h *headValidator) line(l []byte) {
	if !h.started && !bytes.HasPrefix(l, []byte(headPrefix)) {
		h.broken = notHTTP // whatever else is wrong with it
		return
	}
	l, ok := bytes.CutSuffix(l, []byte("\r\n"))
	switch {
	case !ok:
		h.broken = "has a line that does not end in CRLF"
	case bytes.ContainsFunc(l, isControl):
		name, _, _ := strings.Cut(string(l), ":")
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

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// statusLine takes "HTTP/1.x NNN", with or without a reason behind it.
func (h *headValidator) statusLine(l []byte) {
	version, rest, _ := strings.Cut(string(l), " ")
	status, _, _ := strings.Cut(rest, " ")
	minor, ok := strings.CutPrefix(version, headPrefix)
	if !ok || len(minor) != 1 || !isLength(minor) || len(status) != 3 || !isLength(status) {
		h.broken = notHTTP
		return
	}
	h.http10, h.status = minor == "0", status
}

func (h *headValidator) field(l []byte) {
	name, value, ok := bytes.Cut(l, []byte(":"))
	if l[0] == ' ' || l[0] == '\t' || !ok || len(name) == 0 {
		h.broken = "has a line that is no field"
		return
	}
	value = bytes.Trim(value, " \t")
	switch {
	case isFramingLookalike(string(name)):
		h.broken, h.lookalike = "has a framing field with an odd name", true
	case bytes.EqualFold(name, []byte("Content-Length")):
		h.lengthField(string(value))
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
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

func (h *headValidator) lengthField(value string) {
	if !isLength(value) || h.length != "" && h.length != value {
		h.broken = "has no clear length"
	}
	h.length = value
}

func (h *headValidator) codingField(value []byte) {
	if h.chunked || !bytes.EqualFold(value, []byte("chunked")) {
		h.broken = "has an unknown transfer coding"
	}
	h.chunked = true
}

// end validates the head as a whole.
func (h *headValidator) end() {
	h.ended = true
	empty := h.status[0] == '1' || h.status == "204"
	switch {
	case h.chunked && h.length != "":
		h.broken = "has a length and a transfer coding"
	case h.chunked && h.http10:
		h.broken = "has a transfer coding in HTTP/1.0"
	case h.chunked && (empty || h.status == "304"), empty && strings.Trim(h.length, "0") != "":
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

// isMalformedFraming reports whether err is net/http's about a field with a
// control character in its name, or with one that is not ASCII, where the rest is
// the name of a field of framing or coding.
func isMalformedFraming(err error) bool {
	var malformed textproto.ProtocolError
	if !errors.As(err, &malformed) {
		return false
	}
	_, quoted, _ := strings.Cut(string(malformed), "line: ")
	line, err := strconv.Unquote(quoted)
	if err != nil {
		return false
	}
	name, _, _ := strings.Cut(line, ":")
	return wire.IsFramingName(name)
}
