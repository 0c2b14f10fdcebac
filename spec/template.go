package spec

import "github.com/ALRubinger/aileron/spec/internal/template"

// Template is a path pattern in the syntax of net/http's ServeMux, in which text may stand around the variable of a
// segment. The zero value stands for every path.
type Template = template.Template

// Param is a template variable and its escaped value.
type Param = template.Param

// ParseTemplate reads a path template. A literal is written as on the wire, in characters that need no escape.
func ParseTemplate(s string) (Template, error) { return template.Parse(s) }
