package opaque

import (
	"bytes"
	"io"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
)

// Parts is a multipart body (RFC 2046) whose parts are judged as they pass:
// head by its header, judge by the first bytes of its content. A part that is
// refused ends the body before its content.
//
// A line that begins with two dashes counts as a boundary, whichever the
// response names: parts within parts are found, and a client that reads
// another boundary than this package would is not misled.
func Parts(src io.ReadCloser, head func(textproto.MIMEHeader) error, judge Judge) io.ReadCloser {
	return &parts{src: src, head: head, judge: judge, buf: make([]byte, partsPiece), state: lineStart}
}

const (
	partsPiece = 8 << 10
	maxHeader  = 16 << 10 // of one part
)

type parts struct {
	src   io.ReadCloser
	head  func(textproto.MIMEHeader) error
	judge Judge

	buf    []byte
	ready  []byte // may leave
	held   []byte // waits for what decides about it
	err    error  // comes behind ready
	state  int
	line   int    // how many characters of the header's last line have come
	header []byte // of the part under way
}

// What the next byte is.
const (
	lineStart = iota
	inLine
	inHeader
	contentStart
)

func (p *parts) Read(out []byte) (int, error) {
	for len(p.ready) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.fill()
	}
	n := copy(out, p.ready)
	if p.ready = p.ready[n:]; len(p.ready) == 0 {
		return n, p.err
	}
	return n, nil
}

// fill takes the next piece of src.
func (p *parts) fill() {
	n := copy(p.buf, p.held)
	m, err := p.src.Read(p.buf[n:])
	data := p.buf[:n+m]
	p.err = err
	passed, refusal := p.scan(data, err != nil)
	if refusal != nil {
		p.err = &Refusal{refusal}
		clear(data[passed:])
		data = data[:passed]
	}
	p.ready, p.held = data[:passed], append(p.held[:0], data[passed:]...)
}

// Close closes src.
func (p *parts) Close() error { return p.src.Close() }

// scan follows data through the parts and returns how much of it may leave.
func (p *parts) scan(data []byte, final bool) (passed int, refusal error) {
	for at := 0; at < len(data); {
		switch p.state {
		case lineStart:
			if len(data)-at == 1 && data[at] == '-' && !final {
				return at, nil
			}
			p.state = inLine
			if bytes.HasPrefix(data[at:], []byte("--")) {
				p.state, p.header, p.line = inHeader, p.header[:0], 0
			}
		case inLine:
			n := bytes.IndexByte(data[at:], '\n')
			if n < 0 {
				return len(data), nil
			}
			at += n + 1
			p.state = lineStart
		case inHeader:
			at += p.takeHeader(data[at:])
			if p.state == contentStart {
				h := p.parsed()
				if err := p.head(h); err != nil {
					return at, err
				}
				if isMessage(h) { // which begins with a header of its own
					p.state, p.header = inHeader, p.header[:0]
				}
			}
		case contentStart:
			at += blank(data[at:])
			more, err := p.judgeContent(data[at:], final)
			if more || err != nil {
				return at, err
			}
			p.state = lineStart
		}
	}
	return len(data), nil
}

// takeHeader adds data to the header up to its end, and returns how much that
// was. Of a header that is too long, the beginning is judged.
func (p *parts) takeHeader(data []byte) int {
	n := bytes.IndexByte(data, '\n') + 1
	ended := n > 0
	if !ended {
		n = len(data)
	}
	p.header = append(p.header, data[:min(n, maxHeader-len(p.header))]...)
	p.line += len(bytes.TrimRight(data[:n], "\r\n"))
	if ended && p.line == 0 {
		p.state = contentStart
	}
	if ended {
		p.line = 0
	}
	return n
}

// parsed returns the fields of the header. It is read as leniently as clients
// read it: a line that is no field is skipped.
func (p *parts) parsed() textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	last := ""
	for line := range strings.Lines(string(p.header)) {
		line = strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		switch {
		case last != "" && strings.TrimLeft(line, " \t") != line:
			h[last][len(h[last])-1] += " " + strings.TrimSpace(line)
		case ok:
			last = textproto.CanonicalMIMEHeaderKey(name)
			h[last] = append(h[last], strings.TrimSpace(value))
		}
	}
	return h
}

// isMessage reports a part that is a message as RFC 5322 has it.
func isMessage(h textproto.MIMEHeader) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "message/")
}

// leastQuoted is how many characters of quoted-printable hold the longest mark.
const leastQuoted = 96

// judgeContent looks at the beginning of a part's content. more: it takes what
// follows data to decide.
func (p *parts) judgeContent(data []byte, final bool) (more bool, err error) {
	sample := data[:min(len(data), sniffed)]
	final = final || len(data) >= sniffed
	if end := bytes.Index(sample, []byte("\n--")); end >= 0 {
		sample, final = sample[:end], true
	}
	if strings.EqualFold(strings.TrimSpace(p.parsed().Get("Content-Transfer-Encoding")), "quoted-printable") {
		if !final && len(sample) > 0 && sample[0] == '=' && len(sample) < leastQuoted {
			return true, nil
		}
		decoded, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(sample)))
		if f, _ := Sniff(decoded, true); f != "" {
			return false, p.judge(f)
		}
	}
	f, more := Sniff(sample, final)
	if f != "" {
		return false, p.judge(f)
	}
	return more, nil
}
