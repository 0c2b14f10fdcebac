package spec

import (
	"cmp"
	"slices"
	"strings"
)

// The reasons of a NoMatch.
const (
	ReasonHost      = "host_not_allowed"
	ReasonOperation = "operation_not_matched"
	ReasonQuery     = "query_not_declared"
)

// NoMatch is the decision to deny a request, with its reason.
type NoMatch struct {
	Reason    string
	Requested string
	Granted   []string // what would be allowed, the nearest first, at most 32 entries
	message   string
}

// Error returns a sentence for an agent: what was denied, why, and which allowed
// requests come nearest.
func (n *NoMatch) Error() string { return n.message }

const (
	maxGranted = 32  // entries of Granted
	maxListed  = 5   // entries in the sentence
	maxText    = 200 // bytes of a path or a name in the sentence
)

func (ix *Index) noHost(t Target) *NoMatch {
	var granted []string
	for _, h := range ix.hosts[:min(len(ix.hosts), maxGranted)] {
		granted = append(granted, "network:"+h)
	}
	where := hostPort(t.Host, t.Port)
	message := "the host " + where + " is not allowed: no installed connector names it"
	if len(ix.hosts) > 0 {
		message += "; allowed are " + listed(ix.hosts)
	} else {
		message = "the host " + where + " is not allowed: no connector is installed, so nothing is"
	}
	return &NoMatch{Reason: ReasonHost, Requested: "network:" + where, Granted: granted, message: message}
}

func (ix *Index) noOperation(t Target) *NoMatch {
	parts := strings.Split(strings.TrimPrefix(t.Path, "/"), "/")
	var granted, near []string
	for _, tr := range ix.trees(t.Host, t.Port) {
		for _, op := range tr.near(parts, maxGranted) {
			if len(granted) == maxGranted {
				break
			}
			method, path := cmp.Or(op.Method, "*"), cmp.Or(op.Path.String(), "/{path...}")
			if entry := "operation:" + method + " " + t.Host + path; !slices.Contains(granted, entry) {
				granted = append(granted, entry)
				near = append(near, method+" "+path)
			}
		}
	}
	where := hostPort(t.Host, t.Port)
	why := "no operation of an installed connector is that request"
	if !isMethod(t.Method) {
		why = "the method " + badMethod(t.Method) + ", and no operation accepts it"
	}
	message := truncated(t.Method) + " " + truncated(t.Path) + " is not allowed on " + where + ": " + why +
		"; nearest are " + listed(near)
	return &NoMatch{Reason: ReasonOperation, Requested: t.requested(), Granted: granted, message: message}
}

// requested returns the request as the error object of a denial names it.
func (t Target) requested() string { return "operation:" + t.Method + " " + t.Host + t.Path }

// noClear denies a request without TLS for an operation that has a credential or
// a TLS port.
func noClear(t Target) *NoMatch {
	where := hostPort(t.Host, t.Port)
	return &NoMatch{Reason: ReasonOperation, Requested: t.requested(), Granted: []string{"network:" + where},
		message: t.Method + " " + truncated(t.Path) + " is not allowed on " + where + " in clear: use https"}
}

func noQuery(op *Operation, name string) *NoMatch {
	names := op.QueryInputs()
	var granted []string
	for _, in := range names[:min(len(names), maxGranted)] {
		granted = append(granted, "query:"+in)
	}
	message := "the operation " + op.Tool + " " + op.Name + " does not declare the query name " + quote(truncated(name))
	if name == "" {
		name = "?"
		message = "the query cannot be read without doubt (an empty name, a ';' or a broken escape), " +
			"as the operation " + op.Tool + " " + op.Name + " needs"
	}
	if len(names) > 0 {
		message += "; declared are " + listed(names)
	}
	if place := op.placeOfInput(name); place != "" {
		message += "; it is an input of the " + place
	}
	return &NoMatch{Reason: ReasonQuery, Requested: "query:" + truncated(name), Granted: granted, message: message}
}

// noValue denies a request whose input has a value that the operation does not
// declare.
func noValue(op *Operation, in *Input, value string, t Target) *NoMatch {
	no := &NoMatch{Reason: ReasonOperation, Requested: t.requested()}
	if in.In == InQuery {
		no.Reason, no.Requested = ReasonQuery, "query:"+truncated(in.Name+"="+value)
	}
	for _, v := range in.Values[:min(len(in.Values), maxGranted)] {
		no.Granted = append(no.Granted, in.In+":"+in.Name+"="+v)
	}
	no.message = "the operation " + op.Tool + " " + op.Name + " does not allow the value " + quote(truncated(value)) +
		" of " + in.Name + "; allowed are " + listed(in.Values)
	return no
}

// listed returns the first few entries as one text.
func listed(list []string) string {
	s := strings.Join(list[:min(len(list), maxListed)], ", ")
	if len(list) > maxListed {
		s += ", …"
	}
	return s
}

func truncated(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}
