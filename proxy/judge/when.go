package judge

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/condition"
)

// TargetAsks reports whether a request waits for an approval by the conditions of its operation, as far as the target
// tells. needsBody is whether [BodyAsks] may find that it does not: no condition has failed so far, and one is for the
// body, or one for the query has failed and the request has a body, from which a server may take the input as well.
func TargetAsks(op *spec.Operation, params []spec.Param, query string, h http.Header, hasBody bool) (asks,
	needsBody bool) {
	for name := range h {
		if spec.MayReroute(name) { // the server may read another target
			return true, false
		}
	}
	for _, c := range op.When {
		switch {
		case c.In == spec.InBody:
			needsBody = true
		case inTarget(c, params, query) != condition.HoldsNot:
		case c.In == spec.InQuery && hasBody:
			needsBody = true
		default:
			return false, false
		}
	}
	return true, needsBody
}

// inTarget returns whether a condition for the path or the query holds.
func inTarget(c condition.Condition, params []spec.Param, query string) condition.Answer {
	if c.In == spec.InQuery {
		return c.InQuery(query)
	}
	i := slices.IndexFunc(params, func(p spec.Param) bool { return p.Name == c.Name })
	if i < 0 {
		return condition.InDoubt
	}
	return c.InPath(params[i].Value)
}

// BodyAsks reports whether a request waits for an approval by the conditions of its operation for the body, which was
// read whole, and for the query. It does not if one of them fails. A body that two servers may read differently fails
// none, nor does an input that is missing, there twice, or of another type, nor one of the query that the body has too.
func BodyAsks(op *spec.Operation, query string, h http.Header, body []byte) bool {
	if op.Body == formBody {
		return formAsks(op, query, h, body)
	}
	o, ok := bodyObject(op, h, body)
	if !ok {
		return true
	}
	return !slices.ContainsFunc(op.When, func(c condition.Condition) bool {
		switch c.In {
		case spec.InBody:
			return judgeValue(c, o.get(c.Name)) == condition.HoldsNot
		case spec.InQuery:
			return c.InQuery(query) == condition.HoldsNot && !slices.ContainsFunc(o, func(m member) bool {
				return c.IsNamed(m.key) || methodOverride.IsNamed(m.key)
			})
		}
		return false
	})
}

// bodyObject returns the object that a body is, and reports false for what is none, or may be another for some servers.
func bodyObject(op *spec.Operation, h http.Header, body []byte) (object, bool) {
	if len(body) > MaxBody || checkMedia(h, cmp.Or(op.ContentType, "application/json")) != nil ||
		checkJSON(body) != nil {
		return nil, false
	}
	o, err := readObject(body, "the body", op.BodyInputs()...) // one of these in another case is an error
	return o, err == nil
}

// Has reports whether a body is JSON in which an input has a value of its type, a string or an integer, and the same
// one for all servers.
func Has(op *spec.Operation, h http.Header, body []byte, name string) bool {
	o, ok := bodyObject(op, h, body)
	if !ok {
		return false
	}
	raw := o.get(name)
	_, isText := text(raw)
	return isText || len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// formBody is the body of an operation that is a form, which is read as a query is.
const formBody = "form"

// formAsks is [BodyAsks] for an operation whose body is a form. A body of another type fails no condition, nor does one
// that has a name which no input declares, as a server may find an input in it, or that has more parameters than some
// servers read, or that names its own encoding or another method.
func formAsks(op *spec.Operation, query string, h http.Header, body []byte) bool {
	if len(body) > MaxBody || checkMedia(h, "application/x-www-form-urlencoded") != nil || !utf8.Valid(body) {
		return true
	}
	text := string(body)
	if strings.Count(text, "&") >= condition.MaxParameters {
		return true
	}
	for pair := range strings.SplitSeq(text, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil || pair != "" && !op.DeclaresForm(name) || methodOverride.IsNamed(name) || charset.IsNamed(name) {
			return true
		}
	}
	return !slices.ContainsFunc(op.When, func(c condition.Condition) bool {
		switch c.In {
		case spec.InBody:
			return c.InQuery(text) == condition.HoldsNot && !hasParameter(c, query)
		case spec.InQuery:
			return c.InQuery(query) == condition.HoldsNot && !hasParameter(c, text)
		}
		return false
	})
}

// hasParameter reports whether some server finds a parameter for the condition's input, or cannot read the text.
func hasParameter(c condition.Condition, text string) bool {
	for pair := range strings.SplitSeq(text, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(raw); err != nil || c.IsNamed(name) || strings.Contains(pair, ";") {
			return true
		}
	}
	return false
}

// methodOverride is the input by which Rack and others take a request for one of another method, and charset the one by
// which a form is read in another encoding.
var methodOverride, charset = condition.Condition{Name: "_method"}, condition.Condition{Name: "_charset_"}

// judgeValue returns whether a condition holds for a value of JSON; nil: there is none.
func judgeValue(c condition.Condition, raw []byte) condition.Answer {
	if c.Type != "string" {
		return c.Judge(string(raw)) // a string in its place is in doubt: it has quotation marks
	}
	value, ok := text(raw)
	if !ok {
		return condition.InDoubt // no text
	}
	return c.Judge(value)
}
