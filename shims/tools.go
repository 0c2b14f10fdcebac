// Package shims renders the description of the installed connectors that an agent
// reads in its sandbox.
//
// [ToolsFile] returns that file. It grants nothing: the proxy decides by the
// specifications themselves.
package shims

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ALRubinger/aileron/spec"
)

// maxText bounds a text of a connector's author, in runes.
const maxText = 240

// ToolsFile returns /etc/aileron/tools.txt: a line for each tool,
//
//	name  fqn -- Aileron connector operations: a, b
//
// and below it the allowed requests, the form of a denial, and the variables that
// hold placeholders. The same connectors result in the same bytes, whatever their
// order. A text of a connector's author is bounded and on one line, without control
// or formatting characters, so that it cannot pass for a line of aileron.
func ToolsFile(connectors []*spec.Connector) []byte {
	connectors = slices.Clone(connectors)
	slices.SortFunc(connectors, func(a, b *spec.Connector) int {
		return cmp.Or(cmp.Compare(a.FQN, b.FQN), spec.CompareVersions(a.Version, b.Version))
	})
	var b bytes.Buffer
	for _, c := range connectors {
		for _, t := range c.Tools {
			fmt.Fprintf(&b, "%s  %s -- Aileron connector operations: %s\n", t.Name, c.FQN, names(t))
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(rules)
	if len(connectors) == 0 {
		b.WriteString("\nNo connector is installed: nothing is allowed.\n")
		return b.Bytes()
	}
	for _, c := range connectors {
		for _, t := range c.Tools {
			writeTool(&b, c, t)
		}
	}
	writePlaceholders(&b, connectors)
	return b.Bytes()
}

const rules = `Everything that this sandbox sends passes Aileron, with or without proxy settings.
The requests below are allowed; send them with any HTTP client. Where a
credential is needed, Aileron adds it after the request has left the sandbox:
there is none to find in here, and none to ask for.

Any other request is refused with status 403 and a JSON body (unless the person
who started this session lets other requests pass):
  {"error":{"class","message","requested","granted","audit_id","retriable","details":{"reason"}}}
"message" says what to do next and "granted" what is allowed instead. Sending
the same request again does not help when "retriable" is false.

This session: curl -H "Authorization: Bearer $AILERON_TOKEN" "$AILERON_API_URL/session"
`

func names(t spec.Tool) string {
	list := make([]string, len(t.Operations))
	for i, op := range t.Operations {
		list[i] = op.Name
	}
	return strings.Join(list, ", ")
}

func writeTool(b *bytes.Buffer, c *spec.Connector, t spec.Tool) {
	fmt.Fprintf(b, "\n%s, from %s %s", t.Name, c.FQN, c.Version)
	if text := plain(t.Description); text != "" {
		fmt.Fprintf(b, ": %s", text)
	}
	b.WriteByte('\n')
	for _, op := range t.Operations {
		for _, h := range op.Hosts {
			fmt.Fprintf(b, "  %s %s%s\n", method(op), origin(h), cmp.Or(op.Path.String(), "/{path...}"))
		}
		fmt.Fprintf(b, "      %s\n", about(op))
	}
}

// about returns an operation as one line: its name, its purpose, its restrictions.
func about(op *spec.Operation) string {
	s := op.Name
	if text := plain(cmp.Or(op.Summary, op.Description)); text != "" {
		s += ": " + text
	}
	var notes []string
	if op.Injection != nil {
		notes = append(notes, "Aileron adds the credential")
	}
	if op.QueryDeclaredOnly {
		notes = append(notes, "query: "+cmp.Or(inputNames(op.QueryInputs()), "none"))
	}
	for _, in := range op.Inputs {
		if len(in.Values) > 0 {
			notes = append(notes, plain(in.Name)+": "+oneOf(in.Values))
		}
	}
	if body := inputNames(op.BodyInputs()); body != "" {
		notes = append(notes, "body: "+body)
	}
	if op.Upgrade != "" {
		notes = append(notes, op.Upgrade)
	}
	if op.Approval == "required" {
		notes = append(notes, "refused: needs an approval, which cannot be given yet")
	}
	if len(notes) > 0 {
		s += " (" + strings.Join(notes, "; ") + ")"
	}
	return s
}

// oneOf returns the values that an input may have, the first of many. They are
// plain characters.
func oneOf(values []string) string {
	const most = 10
	text := strings.Join(values[:min(len(values), most)], " or ")
	if more := len(values) - most; more > 0 {
		text += fmt.Sprintf(" or %d more", more)
	}
	return text
}

// inputNames returns the names of inputs as one line.
func inputNames(list []string) string {
	inert := make([]string, len(list))
	for i, name := range list {
		inert[i] = plain(name)
	}
	return strings.Join(inert, ", ")
}

func method(op *spec.Operation) string {
	if op.Method == "" || op.Method == "*" {
		return "ANY"
	}
	return op.Method
}

// origin returns the origin of a request to h: in clear on port 80 only.
func origin(h spec.HostPattern) string {
	name := h.Name
	if h.Wildcard {
		name = "*." + name
	}
	switch h.Port {
	case 443:
		return "https://" + name
	case 80:
		return "http://" + name
	}
	return fmt.Sprintf("https://%s:%d", name, h.Port)
}

func writePlaceholders(b *bytes.Buffer, connectors []*spec.Connector) {
	var vars []string
	for _, c := range connectors {
		for _, p := range c.Placeholders {
			vars = append(vars, p.Env)
		}
	}
	if len(vars) == 0 {
		return
	}
	slices.Sort(vars)
	b.WriteString(`
These variables hold placeholders, so that tools which ask for a token start.
They are worth nothing; where one is sent, Aileron replaces it:
`)
	fmt.Fprintf(b, "  %s\n", strings.Join(slices.Compact(vars), " "))
}

// plain returns an author's text as one line of visible characters.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "…"
	}
	return s
}
