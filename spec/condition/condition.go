// Package condition decides, without a model, whether an input of a request has a value for which an operation asks for
// an approval:
//
//	c, err := condition.Read("query.branch", "string", []string{"main", "release/*"})
//	if c.InQuery(query) != condition.HoldsNot {
//		// a person is asked
//	}
//
// What two servers may read differently is [InDoubt], and never repaired.
package condition

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Condition is that an input of a request has a value.
type Condition struct {
	In, Name string   // of the input: path, query or body, and for the path the name of a variable
	Type     string   // of the input: string, integer or boolean
	Values   []string // each the whole value, or the beginning of one with "*" at the end
}

// Read returns the condition for an input, by its place and name, that its value is one of those. kind is the type of
// the input; "" is a string.
func Read(key, kind string, values []string) (c Condition, err error) {
	c.In, c.Name, _ = strings.Cut(key, ".")
	if c.Type, c.Values = kind, values; kind == "" {
		c.Type = "string"
	}
	if c.Type != "string" && c.Type != "integer" && c.Type != "boolean" {
		return c, fmt.Errorf("its type is %s, and a condition needs a string, an integer or a boolean", c.Type)
	}
	for _, value := range values {
		if !c.canHold(value) {
			return c, fmt.Errorf("%.100q is never the plain text of such an input; a value that ends with * stands for all "+
				"that begin so", value)
		}
	}
	return c, nil
}

// Answer is whether a condition holds for a value.
type Answer int

// The answers. The zero value is the one for which a person is asked.
const (
	InDoubt Answer = iota // servers may read the value differently
	Holds
	HoldsNot
)

// String returns the condition in words, such as "path.branch is main or release/*". A value that could be read as
// words of aileron's is in quotation marks.
func (c Condition) String() string {
	var values []string
	for _, v := range c.Values {
		if slices.Contains(words, strings.ToLower(v)) || strings.Trim(v, bare) != "" {
			v = strconv.Quote(v)
		}
		values = append(values, v)
	}
	return c.In + "." + c.Name + " is " + strings.Join(values, " or ")
}

// words are those that would have a meaning in the place of a value.
var words = []string{"any", "anything", "none", "nothing", "never", "always", "not", "or", "and", "is", "other"}

// bare are characters of values that need no quotation marks.
const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:*@-"

// Text returns the conditions of a list in words.
func Text(list []Condition) string {
	var all []string
	for _, c := range list {
		all = append(all, c.String())
	}
	return strings.Join(all, " and ")
}

// canHold reports whether a value that is declared can be the one of a request, and is not in doubt in each.
func (c Condition) canHold(value string) bool {
	text, isPrefix := strings.CutSuffix(value, "*")
	if isPrefix {
		return c.Type == "string" && text != "" && !strings.Contains(text, "*") && isPlainText(text)
	}
	return !strings.Contains(value, "*") && c.isPlain(value)
}

// Judge returns whether the condition holds for a value, as a server reads it. A value in another case is the same:
// asking too often is no harm.
func (c Condition) Judge(value string) Answer {
	switch {
	case !c.isPlain(value):
		return InDoubt
	case c.names(value):
		return Holds
	case c.Type == "string" && c.isNear(value):
		return InDoubt
	}
	return HoldsNot
}

// names reports whether a text is one of the values.
func (c Condition) names(text string) bool {
	return slices.ContainsFunc(c.Values, func(v string) bool {
		begin, isPrefix := strings.CutSuffix(v, "*")
		return isPrefix && len(text) >= len(begin) && strings.EqualFold(text[:len(begin)], begin) ||
			!isPrefix && strings.EqualFold(text, v)
	})
}

// isNear reports whether some servers take a text for one of the values: without slashes or quotation marks at its
// ends, as an entry of a list with commas, or as a number.
func (c Condition) isNear(text string) bool {
	for entry := range strings.SplitSeq(text, ",") {
		if c.names(strings.Trim(entry, "\"' /")) {
			return true
		}
	}
	return strings.Trim(text[:1], digits+"+-") == "" && slices.ContainsFunc(c.Values, func(v string) bool {
		number, isPrefix := strings.CutSuffix(v, "*")
		if number == "" || strings.Trim(number, digits) != "" {
			return false
		}
		// What begins with a zero may be of another base.
		more, ok := strings.CutPrefix(strings.TrimLeft(text, "+-0"), strings.TrimLeft(number, "0"))
		return len(text) > 1 && text[0] == '0' || ok && (isPrefix || more == "" || strings.Trim(more[:1], digits) != "")
	})
}

const digits = "0123456789"

// isPlain reports whether all servers read a value of the input's type alike.
func (c Condition) isPlain(value string) bool {
	switch c.Type {
	case "integer":
		n, err := strconv.ParseInt(value, 10, 54) // what all parsers of JSON keep
		return err == nil && strconv.FormatInt(n, 10) == value
	case "boolean":
		return value == "true" || value == "false"
	}
	return isPlainText(value)
}

// isPlainText reports whether a text is one that no server decodes, trims, cuts or folds: characters of ASCII without
// an escape, a control character, a parameter (;), a separator of another system (\), or a blank at an end.
func isPlainText(s string) bool {
	if s == "" || strings.Trim(s, " +") != s || strings.Contains(s, "//") || strings.Contains(s, "..") ||
		strings.Contains(s, "./") {
		return false
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}

// delimiters are characters behind which a server that decodes a target twice reads something else.
const delimiters = "?#&"

// InPath returns whether the condition holds for the value of a variable, as it stands in the path.
func (c Condition) InPath(raw string) Answer {
	value, err := url.PathUnescape(raw)
	if err != nil || strings.Trim(value, "/") != value || strings.ContainsAny(value, delimiters) {
		return InDoubt
	}
	answer := c.Judge(value)
	// A router may take what follows a dot for the format of the response.
	last := strings.LastIndexByte(value, '/') + 1
	bare, _, dotted := strings.Cut(value[last:], ".")
	if dotted && bare != "" && answer == HoldsNot && c.Judge(value[:last]+bare) != HoldsNot {
		return InDoubt
	}
	return answer
}

// MaxParameters is how many parameters of a query or a form are judged. Of more, some servers read the first ones, and
// take a default for what follows: 1000 of them, as PHP and qs do.
const MaxParameters = 200

// InQuery returns whether the condition holds for a query. It is in doubt if there is not just one parameter that some
// server takes for the input, or if there are more than [MaxParameters].
func (c Condition) InQuery(query string) Answer {
	// Some servers separate parameters by a semicolon.
	if strings.Contains(query, ";") || strings.Count(query, "&") >= MaxParameters {
		return InDoubt
	}
	answer, found := InDoubt, false
	for pair := range strings.SplitSeq(query, "&") {
		raw, text, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		value, errValue := url.QueryUnescape(text)
		switch {
		case err != nil:
			return InDoubt
		case !c.IsNamed(name):
		case found || name != c.Name || errValue != nil || strings.ContainsAny(value, delimiters):
			return InDoubt
		default:
			answer, found = c.Judge(value), true
		}
	}
	return answer
}

// IsNamed reports whether some server takes a parameter of that name for the input.
func (c Condition) IsNamed(name string) bool {
	return foldedName(name) == foldedName(c.Name) || flatName(name) == flatName(c.Name)
}

// foldedName returns what the names of parameters have in common that some server takes for the same: in any case, as
// an entry of a list, with characters that PHP takes for an underscore, or with a blank before it.
func foldedName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimSpace(name)
	if i := strings.IndexByte(name, '['); i > 0 && strings.Contains(name[i:], "]") {
		name = name[:i]
	}
	return strings.ToLower(strings.NewReplacer(".", "_", " ", "_", "[", "_").Replace(name))
}

// flatName returns what names have in common whose parts are the same, however brackets and dots divide or surround
// them: created[gte] and created.gte, to and [[to].
func flatName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.Trim(strings.TrimSpace(name), "[]")
	return strings.ToLower(strings.NewReplacer("]", "", ".", "_", " ", "_", "[", "_").Replace(name))
}
