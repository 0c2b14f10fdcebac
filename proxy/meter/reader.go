// Package meter counts what operations use up, such as the tokens of a model, and denies what is beyond a budget.
//
// A [Reader] finds the declared numbers in a response while it is passed on: [Reader.Write] takes its bytes, and
// [Reader.Read] returns what was found. It keeps the numbers alone, and the name of the model, never
// another part of the response.
//
// A [Ledger] has the limits of one session. Each request asks it with [Ledger.Admit], and reports with
// [Charge.Settle] what it has used:
//
//	charge, over := ledger.Admit(names)
//	if over != nil {
//		return over // the limit
//	}
//	defer charge.Settle(used)
package meter

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

const (
	maxDepth  = 32      // of nested values; what is deeper has no number that is looked for
	maxKey    = 64      // bytes of a key; a longer one is none that is looked for
	maxNumber = 32      // bytes of a number
	maxValue  = 1 << 50 // of a meter, in one response and in all
)

// Reader finds the numbers of meters in a JSON document, or in the events of a stream (text/event-stream). Of a number
// that comes again, as in the events of a model that counts up, the largest counts. It is not safe for concurrent use.
type Reader struct {
	meters []spec.Meter
	paths  []wanted
	values []int64 // by meter; -1: there was none
	bad    bool    // a number was negative, or too large
	model  string  // the name of it; "": there was none

	stream bool
	line   lineState
	prefix int  // of "data:", that has been read
	wasCR  bool // the last byte ended a line, with the LF that may follow

	stack [maxDepth]frame
	depth int
	over  int // values deeper than maxDepth that are open

	text, escaped, isKey, expectKey bool
	isModel                         bool
	next                            uint64 // the paths that lead to the next value
	token                           []byte // of a key or a number
	number, long                    bool
}

type wanted struct {
	meter int // modelPath: that of the model's name
	keys  []string
}

const modelPath = -1

// frame is an object or an array that is open.
type frame struct {
	array bool
	level int    // of its keys in paths
	paths uint64 // that lead into it
}

type lineState uint8

const (
	lineBegins lineState = iota
	lineIsData
	lineIsOther
)

// NewReader returns a reader for the meters of an operation, and the model that they are of. stream is true for a
// response of events.
func NewReader(meters []spec.Meter, model spec.Meter, stream bool) *Reader {
	r := &Reader{meters: meters, stream: stream, token: make([]byte, 0, maxKey)}
	if len(model.Source) > 0 {
		r.paths = append(r.paths, wanted{modelPath, model.Source})
	}
	if stream {
		for _, keys := range model.Events {
			r.paths = append(r.paths, wanted{modelPath, keys})
		}
	}
	for i, m := range meters {
		r.values = append(r.values, -1)
		r.paths = append(r.paths, wanted{i, m.Source})
		if !stream {
			continue
		}
		for _, keys := range m.Events {
			r.paths = append(r.paths, wanted{i, keys})
		}
	}
	r.reset()
	return r
}

// reset begins a document.
func (r *Reader) reset() {
	r.depth, r.over, r.text, r.escaped, r.isKey, r.expectKey, r.number = 0, 0, false, false, false, false, false
	r.next = 1<<len(r.paths) - 1
}

// Write takes the next bytes of the response.
func (r *Reader) Write(p []byte) {
	if !r.stream {
		r.scan(p)
		return
	}
	for len(p) > 0 {
		if r.wasCR && p[0] == '\n' { // the rest of CRLF
			p, r.wasCR = p[1:], false
			continue
		}
		end := bytes.IndexAny(p, "\r\n")
		if r.wasCR = end >= 0 && p[end] == '\r'; end < 0 {
			r.readLine(p)
			return
		}
		r.readLine(p[:end])
		r.endLine()
		p = p[end+1:]
	}
}

// dataField begins a line of an event with data.
const dataField = "data:"

// readLine takes a part of a line.
func (r *Reader) readLine(p []byte) {
	for len(p) > 0 && r.line == lineBegins {
		switch c := p[0]; {
		case c == dataField[r.prefix]:
			if r.prefix++; r.prefix == len(dataField) {
				r.line = lineIsData
			}
		default:
			r.line = lineIsOther
		}
		p = p[1:]
	}
	if r.line == lineIsData {
		r.scan(p)
	}
}

// endLine ends a line, and with an empty one the event.
func (r *Reader) endLine() {
	switch {
	case r.line == lineBegins && r.prefix == 0:
		r.endNumber()
		r.reset()
	case r.line == lineIsData:
		r.scan([]byte("\n"))
	}
	r.line, r.prefix = lineBegins, 0
}

// scan takes the next bytes of a document.
func (r *Reader) scan(p []byte) {
	for len(p) > 0 {
		if r.text {
			p = r.scanText(p)
			continue
		}
		c := p[0]
		if r.number && !isNumber(c) {
			r.endNumber()
		}
		switch {
		case r.number:
			r.keep(p[:1], maxNumber)
		case c == '"':
			r.text, r.isKey = true, r.expectKey && r.over == 0
			r.isModel = !r.isKey && r.model == "" && r.next != 0 && r.atModel()
			r.token, r.long = r.token[:0], false
		case c == '{' || c == '[':
			r.open(c == '[')
		case c == '}' || c == ']':
			r.close()
		case c == ',':
			r.comma()
		case c == ':':
			r.expectKey = false
		case r.next != 0 && (c == '-' || c >= '0' && c <= '9'):
			r.number, r.token, r.long = true, append(r.token[:0], c), false
		}
		p = p[1:]
	}
}

// scanText takes a part of a string, and returns what follows it.
func (r *Reader) scanText(p []byte) []byte {
	if r.escaped {
		r.escaped = false
		return p[1:]
	}
	end := bytes.IndexByte(p, '"')
	part := p
	if end >= 0 {
		part = p[:end]
	}
	if esc := bytes.IndexByte(part, '\\'); esc >= 0 {
		r.escaped, r.long = true, true // a key that is escaped is none that is looked for
		return p[esc+1:]
	}
	if r.isKey || r.isModel {
		r.keep(part, maxKey)
	}
	if end < 0 {
		return nil
	}
	r.text = false
	switch {
	case r.isKey:
		r.endKey()
		return p[end+1:]
	case r.isModel && !r.long && IsModel(string(r.token)):
		r.model = string(r.token)
	}
	r.next = 0
	return p[end+1:]
}

// atModel reports whether the next value is the name of the model.
func (r *Reader) atModel() bool {
	level := r.level()
	for i, w := range r.paths {
		if w.meter == modelPath && r.next&(1<<i) != 0 && len(w.keys) == level {
			return true
		}
	}
	return false
}

// keep adds bytes to a key or a number, up to a bound.
func (r *Reader) keep(p []byte, most int) {
	if r.long = r.long || len(r.token)+len(p) > most; !r.long {
		r.token = append(r.token, p...)
	}
}

// endKey finds the paths that lead to the key's value.
func (r *Reader) endKey() {
	r.next, r.isKey, r.expectKey = 0, false, false
	if r.depth == 0 || r.long {
		return
	}
	f := &r.stack[r.depth-1]
	if f.paths == 0 {
		return
	}
	for i, w := range r.paths {
		if f.paths&(1<<i) != 0 && f.level < len(w.keys) && w.keys[f.level] == string(r.token) {
			r.next |= 1 << i
		}
	}
}

// level returns that of the next value: the number of keys that lead to it.
func (r *Reader) level() int {
	if r.depth == 0 {
		return 0
	}
	f := &r.stack[r.depth-1]
	if f.array {
		return f.level
	}
	return f.level + 1
}

// open begins an object or an array. An array at the top has documents; no path leads through any other.
func (r *Reader) open(array bool) {
	if r.depth == maxDepth {
		r.over++
		r.next, r.expectKey = 0, false
		return
	}
	paths := r.next
	if array && r.depth > 0 {
		paths = 0
	}
	r.stack[r.depth] = frame{array, r.level(), paths}
	r.depth++
	r.expectKey, r.next = !array, 0
	if array {
		r.next = paths
	}
}

func (r *Reader) close() {
	switch {
	case r.over > 0:
		r.over--
	case r.depth > 0:
		r.depth--
	}
	r.expectKey, r.next = false, 0
}

// comma begins the next value of an array, or the next key of an object.
func (r *Reader) comma() {
	r.next, r.expectKey = 0, false
	if r.depth == 0 || r.over > 0 {
		return
	}
	f := &r.stack[r.depth-1]
	if r.expectKey = !f.array; f.array {
		r.next = f.paths
	}
}

// endNumber takes a number into the meters that its paths are of.
func (r *Reader) endNumber() {
	if !r.number {
		return
	}
	r.number = false
	level, next := r.level(), r.next
	r.next = 0
	for i, w := range r.paths {
		if next&(1<<i) == 0 || len(w.keys) != level || w.meter == modelPath {
			continue
		}
		v, err := strconv.ParseFloat(string(r.token), 64)
		if err != nil || r.long || v < 0 || v > maxValue || math.IsNaN(v) {
			r.bad = true
			return
		}
		r.values[w.meter] = max(r.values[w.meter], int64(math.Ceil(v)))
	}
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

// Read returns the sums by the names of meters, of those that were found, and whether all that was found under a
// declared path was a number that counts.
func (r *Reader) Read() (found map[string]int64, good bool) {
	found = map[string]int64{}
	for i, v := range r.values {
		if v >= 0 {
			found[r.meters[i].Name] = Sum(found[r.meters[i].Name], v)
		}
	}
	return found, !r.bad
}

// Model returns the name of the model, which fits into a row ([IsModel]), "" if there was none.
func (r *Reader) Model() string { return r.model }

// IsModel reports whether text may be the name of a model in a row: at most 64 letters, digits and ._:/@-, of which the
// first is a letter or a digit. An upstream chooses it.
func IsModel(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte("._:/@-", c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= maxKey
}

// Sum returns a+b, of numbers that are not negative, and at most the largest that is counted.
func Sum(a, b int64) int64 { return min(a+b, maxValue) }
