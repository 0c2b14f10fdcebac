package judge

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/spec"
)

// ErrOverride is the error of a form, or of JSON, that has a parameter by which Rails, Laravel and others take the
// request for one of another method.
var ErrOverride = errors.New("the body may name another method than the request's, as _method does")

// GuardForm returns the body of a POST of an operation, which fails with [ErrOverride] before the last byte of such a
// parameter's name, and in JSON behind it. A body that servers do not read as a form is returned as it is, and so is
// that of an operation that declares the parameter. A form that is encoded cannot be read, and fails at its first byte.
func GuardForm(op *spec.Operation, h http.Header, body io.ReadCloser) io.ReadCloser {
	kinds := strings.ToLower(strings.Join(h["Content-Type"], ","))
	g := &guardedForm{ReadCloser: body, lines: strings.Contains(kinds, "multipart/")}
	isForm := g.lines || strings.Contains(kinds, "form-urlencoded") || kinds == ""
	isJSON := !isForm && (strings.Contains(kinds, "/json") || strings.Contains(kinds, "+json"))
	declared := op.DeclaresForm(methodOverride.Name)
	switch encoded := strings.Join(h["Content-Encoding"], ","); {
	case isJSON && !declared:
		g.keys = &overrideKeys{}
	case !isForm, op.Body == formBody && declared:
		return body
	case encoded != "" && !strings.EqualFold(encoded, "identity"):
		g.err = ErrOverride
	}
	return g
}

// guardedForm is the body of a form.
type guardedForm struct {
	io.ReadCloser
	lines bool          // it has parts, whose names stand in lines
	keys  *overrideKeys // of JSON; nil: it is a form
	name  overrideName
	value bool   // what comes is no name
	line  []byte // the beginning of a line of a body of parts
	of    bool   // the line before is one with a name, which this one may go on
	err   error
}

func (g *guardedForm) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	n, err := g.ReadCloser.Read(p)
	scan := g.scanNames
	switch {
	case g.keys != nil:
		scan = g.keys.scan
	case g.lines:
		scan = g.scanLines
	}
	if !scan(p[:n], err != nil) {
		g.err = ErrOverride
		return 0, g.err
	}
	return n, err
}

// scanNames reports whether no name in a piece of a form overrides the method. last is whether nothing follows.
func (g *guardedForm) scanNames(piece []byte, last bool) bool {
	for _, c := range piece {
		switch {
		case c == '&' || c == ';' || c == '=' && !g.value:
			if !g.value && g.name.overrides() {
				return false
			}
			g.value, g.name = c == '=', overrideName{}
		case !g.value:
			g.name.add(c)
		}
	}
	return !last || g.value || !g.name.overrides()
}

// maxPartLine bounds a line with the name of a part, in bytes.
const maxPartLine = 4 << 10

// scanLines is scanNames for a body of parts: any line counts that could be one of a part's head.
func (g *guardedForm) scanLines(piece []byte, last bool) bool {
	for _, c := range piece {
		if c == '\n' || c == '\r' {
			if !g.endLine() {
				return false
			}
		} else if len(g.line) <= maxPartLine {
			g.line = append(g.line, c)
		}
	}
	return !last || g.endLine()
}

// endLine reports whether the line that ends has no name that overrides the method.
func (g *guardedForm) endLine() bool {
	const field = "content-disposition"
	goesOn := g.of && len(g.line) > 0 && (g.line[0] == ' ' || g.line[0] == '\t')
	isOne := goesOn || len(g.line) >= len(field) && strings.EqualFold(string(g.line[:len(field)]), field)
	text := string(g.line)
	if len(g.line) > 0 { // the second half of a line's end is no line
		g.of, g.line = isOne, g.line[:0]
	}
	if !isOne {
		return true
	}
	for _, match := range partName().FindAllStringSubmatch(text, -1) {
		value := strings.Trim(match[1], `"`)
		if i := strings.LastIndexByte(value, '\''); i >= 0 { // of an extended value: UTF-8''name
			value = value[i+1:]
		}
		var name overrideName
		for i := range len(value) {
			name.add(value[i])
		}
		if name.overrides() {
			return false
		}
	}
	return len(text) <= maxPartLine
}

// partName finds the names of a part, but not those of files.
var partName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^a-z])name(?:\*[0-9*]*)?\s*=\s*("[^"]*"?|[^;\s]*)`)
})

// overrideName compares a name with that of the parameter, as the most lenient server does: escapes are decoded, case
// is ignored, and whatever is no letter and no digit may stand anywhere, but there has to be some. No name is long
// enough for what stands in front of it to hide it.
type overrideName struct {
	matched int  // letters
	odd     bool // there is another character than a letter
	other   bool // it is another name
	escape  int  // characters of an escape that are missing
	decoded byte
}

func (n *overrideName) add(c byte) {
	if n.escape > 0 {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 { // it is none
			n.escape, n.odd = 0, true
		} else {
			n.decoded = n.decoded<<4 | byte(digit)
			if n.escape--; n.escape == 0 {
				n.take(n.decoded)
			}
			return
		}
	}
	if c == '%' {
		n.escape, n.decoded = 2, 0
		return
	}
	n.take(c)
}

// take compares a character.
func (n *overrideName) take(c byte) {
	const name = "method"
	lower := c | 0x20
	switch isLetter := lower >= 'a' && lower <= 'z'; {
	case c >= '0' && c <= '9', isLetter && (n.matched == len(name) || lower != name[n.matched]):
		n.other = true
	case isLetter:
		n.matched++
	default:
		n.odd = true
	}
}

// overrides reports whether the name that was added is that of the parameter.
func (n *overrideName) overrides() bool { return n.matched == len("method") && n.odd && !n.other }

// Ready reports whether a read returns at once, if the source can tell.
func (g *guardedForm) Ready() bool {
	src, ok := g.ReadCloser.(interface{ Ready() bool })
	return ok && src.Ready()
}

// Pause notes that the body is not read for a while, and not by its client's fault.
func (g *guardedForm) Pause() {
	if src, ok := g.ReadCloser.(interface{ Pause() }); ok {
		src.Pause()
	}
}
