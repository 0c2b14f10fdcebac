package approvals

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Pattern is requests that a person wants to be asked about, in addition to those of operations that require an
// approval.
type Pattern struct {
	method string
	host   spec.HostPattern // Name "": any
	port   bool             // the one of host; otherwise any
	path   string
	text   string
}

// ParsePattern reads "METHOD PATH" or "METHOD HOST/PATH". METHOD may be *, and * in PATH stands for any text.
func ParsePattern(text string) (Pattern, error) {
	method, at, ok := strings.Cut(text, " ")
	p := Pattern{method: method, path: at, text: text}
	switch {
	case !ok || at == "" || method == "" || method != "*" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return p, fmt.Errorf("%q is not METHOD PATH, such as %q or %q", text, "POST *", "DELETE api.example.com/v1/*")
	case strings.ContainsFunc(at, func(r rune) bool { return r <= ' ' || r > '~' || r == '?' || r == '#' }):
		return p, fmt.Errorf("%q has a path with a blank, a query or a character that is not plain", text)
	case at == "*" || strings.HasPrefix(at, "/"):
		return p, nil
	}
	host, path, _ := strings.Cut(at, "/")
	var err error
	if p.host, err = spec.ParseHost(host); err != nil {
		return p, fmt.Errorf("%q names no host: %w", text, err)
	}
	p.port = strings.Contains(host, ":")
	if p.path = "/" + path; path == "" {
		p.path = "*"
	}
	return p, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// overrides are request fields by which servers take another method than that of the request.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// Covers reports whether a person wants to be asked about a request. In doubt they do: where two servers may read its
// target differently, or it names another method beside its own.
func (p Pattern) Covers(t spec.Target, h http.Header, doubtful bool) bool {
	if p.host.Name != "" {
		port := t.Port
		if !p.port {
			port = p.host.Port
		}
		if !p.host.Covers(t.Host, port) {
			return false
		}
	}
	method := p.method == "*" || strings.EqualFold(p.method, t.Method) || strings.Contains(t.Query, "_method") ||
		slices.ContainsFunc(overrides, func(name string) bool { return len(h[name]) > 0 })
	return method && (doubtful || glob(p.path, t.Path))
}

// glob reports whether a text is of a pattern in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, last)
}
