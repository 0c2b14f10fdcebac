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

// headError is a response head that is refused. Its fault names the rule and
// holds no byte of the head.
type headError struct {
	fault string
	odd   bool // it is in a name that a lenient client takes for a framing field's
}

func (e *headError) Error() string { return "read the response: its head " + e.fault }

// readResponse reads the final response's head.
func (c *laneConn) readResponse(r *http.Request, a *attempt) (*http.Response, error) {
	for range maxInterim {
		if _, err := c.r.Peek(1); err != nil {
			return nil, err
		}
		a.answered.Store(true)
		if err := c.checkHead(); err != nil {
			return nil, err
		}
		res, err := http.ReadResponse(c.r, r)
		if err != nil {
			return nil, err
		}
		interim := res.StatusCode >= http.StatusContinue && res.StatusCode < http.StatusOK
		if !interim || res.StatusCode == http.StatusSwitchingProtocols {
			return res, nil
		}
	}
	return nil, &headError{fault: interimOnly}
}

// checkHead waits for a whole head and checks it before net/http parses it.
// It takes nothing from c.r, whose buffer grows with the head.
func (c *laneConn) checkHead() error {
	var h rawHead
	for start, seen := 0, 0; ; {
		buf, err := c.peekBeyond(seen)
		if err != nil {
			return err
		}
		for n := bytes.IndexByte(buf[seen:], '\n'); n >= 0; n = bytes.IndexByte(buf[seen:], '\n') {
			seen += n + 1
			h.line(buf[start:seen])
			start = seen
			if h.fault != "" {
				return &headError{h.fault, h.odd}
			}
			if h.ended {
				return nil
			}
		}
		if seen = len(buf); start == 0 && !bytes.HasPrefix(buf, []byte(beginning)[:min(seen, len(beginning))]) {
			return &headError{fault: notHTTP}
		}
	}
}

// peekBeyond returns what has come, once that is more than seen bytes.
func (c *laneConn) peekBeyond(seen int) ([]byte, error) {
	if seen >= maxResponseHead {
		return nil, &headError{fault: tooLarge}
	}
	if seen == c.r.Size() {
		whole, _ := c.r.Peek(seen)
		c.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(whole)), c), 2*seen)
	}
	if _, err := c.r.Peek(seen + 1); err != nil {
		return nil, err
	}
	return c.r.Peek(c.r.Buffered())
}

const (
	beginning = "HTTP/1." // of a head

	notHTTP  = "does not begin as HTTP/1 does"
	tooLarge = "is larger than 256 KiB"

	interimOnly = "does not come after five interim ones"
)

// rawHead is what the lines of a head have shown so far: RFC 9112 sections 4
// to 6. Where a recipient may repair or refuse, it refuses.
type rawHead struct {
	begun  bool
	ended  bool
	fault  string // why it is refused; "": it is not
	odd    bool   // see headError
	old    bool   // HTTP/1.0
	status string
	length string // "": not announced
	coded  bool   // chunked
}

func (h *rawHead) line(l []byte) {
	if !h.begun && !bytes.HasPrefix(l, []byte(beginning)) {
		h.fault = notHTTP // whatever else is wrong with it
		return
	}
	l, ok := bytes.CutSuffix(l, []byte("\r\n"))
	switch {
	case !ok:
		h.fault = "has a line that does not end in CRLF"
	case bytes.ContainsFunc(l, isControl):
		name, _, _ := strings.Cut(string(l), ":")
		h.fault, h.odd = "has a control character", wire.ResemblesFraming(name)
	case !h.begun:
		h.begun = true
		h.statusLine(l)
	case len(l) == 0:
		h.end()
	default:
		h.field(l)
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// statusLine takes "HTTP/1.x NNN", with or without a reason behind it.
func (h *rawHead) statusLine(l []byte) {
	version, rest, _ := strings.Cut(string(l), " ")
	status, _, _ := strings.Cut(rest, " ")
	minor, ok := strings.CutPrefix(version, "HTTP/1.")
	if !ok || len(minor) != 1 || !isLength(minor) || len(status) != 3 || !isLength(status) {
		h.fault = notHTTP
		return
	}
	h.old, h.status = minor == "0", status
}

func (h *rawHead) field(l []byte) {
	name, value, ok := bytes.Cut(l, []byte(":"))
	if l[0] == ' ' || l[0] == '\t' || !ok || len(name) == 0 {
		h.fault = "has a line that is no field"
		return
	}
	value = bytes.Trim(value, " \t")
	switch {
	case isOddFraming(string(name)):
		h.fault, h.odd = "has a framing field with an odd name", true
	case bytes.EqualFold(name, []byte("Content-Length")):
		h.lengthField(string(value))
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		h.codingField(value)
	}
}

// isOddFraming reports a name that is none of the two fields that frame a
// body and may be taken for one: with a blank in front of the colon.
func isOddFraming(name string) bool {
	if wire.IsPlainFieldName(name) {
		return false
	}
	letters := wire.FoldFieldName(name)
	return letters == "contentlength" || letters == "transferencoding"
}

func (h *rawHead) lengthField(value string) {
	if !isLength(value) || h.length != "" && h.length != value {
		h.fault = "has no clear length"
	}
	h.length = value
}

func (h *rawHead) codingField(value []byte) {
	if h.coded || !bytes.EqualFold(value, []byte("chunked")) {
		h.fault = "has an unknown transfer coding"
	}
	h.coded = true
}

// end judges the head as a whole.
func (h *rawHead) end() {
	h.ended = true
	empty := h.status[0] == '1' || h.status == "204"
	switch {
	case h.coded && h.length != "":
		h.fault = "has a length and a transfer coding"
	case h.coded && h.old:
		h.fault = "has a transfer coding in HTTP/1.0"
	case h.coded && (empty || h.status == "304"), empty && strings.Trim(h.length, "0") != "":
		h.fault = "announces a body that its status does not have"
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

// malformedFraming reports net/http's refusal of a field with a control
// character in its name, or of what is no ASCII, where the rest is the name of
// a field of framing or coding.
func malformedFraming(err error) bool {
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
