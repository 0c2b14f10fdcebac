package shims

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// exits is the end of each help text.
const exits = `
Options:
  --args JSON  the arguments, as one JSON object; - reads them from standard input
  --json       print the response in a JSON object, with its status and audit id
Exit status: 0, or 1 for a denial and an upstream status of 400 and above, 2 for
a wrong call, 75 while an approval is pending. The reason is on standard error.
`

// credentialNote is what the help of an operation with a credential begins with.
const credentialNote = "Aileron adds the credential: pass none.\n"

// toolHelp returns what TOOL --help prints.
func toolHelp(name string, c *spec.Connector, t spec.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s OPERATION [--args JSON|-] [--json]\n       %s OPERATION --help\n\n", name, name)
	if text := plain(t.Description); text != "" {
		fmt.Fprintf(&b, "%s: %s\n\n", name, text)
	}
	fmt.Fprintf(&b, "Operations of %s %s:\n", c.FQN, plain(c.Version))
	width := 0
	for _, op := range t.Operations {
		width = max(width, len(op.Name))
	}
	width = min(width, 32)
	for _, op := range t.Operations {
		line := fmt.Sprintf("  %-*s  %s", width, op.Name, plain(cmp.Or(op.Summary, op.Description)))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// operationHelp returns what TOOL OPERATION --help prints.
func operationHelp(name string, op *spec.Operation) string {
	var b strings.Builder
	b.Grow(1 << 10)
	title := name + " " + op.Name
	fmt.Fprintf(&b, "Usage: %s [--args JSON|-] [--json]\n\n", title)
	for _, text := range slices.Compact([]string{plain(op.Summary), plain(op.Description)}) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", op.Name, text)
		}
	}
	for _, h := range op.Hosts {
		b.WriteString(method(op) + " " + origin(h) + cmp.Or(op.Path.String(), "/{path...}") + "\n")
	}
	if op.Injection != nil {
		b.WriteString(credentialNote)
	}
	if op.Approval == "required" {
		b.WriteString("Refused: it needs an approval, which cannot be given yet.\n")
	}
	if why := onWireOnly(op); why != "" {
		fmt.Fprintf(&b, "\nThis command cannot run it, as %s: send its requests with an HTTP client.\n", why)
		return b.String()
	}
	inputs := argumentsOf(op)
	writeInputs(&b, inputs)
	fmt.Fprintf(&b, "\nExample:\n  %s%s\n", title, exampleOf(inputs))
	return b.String()
}

// actionHelp returns what NAME --help prints for an action.
func actionHelp(name string, a Action) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [--args JSON|-] [--json]\n\n", name)
	if text := plain(a.Description); text != "" {
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	fmt.Fprintf(&b, "An action of this session, version %s.\n", cmp.Or(plain(a.Version), "unknown"))
	writeInputs(&b, a.Inputs)
	fmt.Fprintf(&b, "\nExample:\n  %s%s\n", name, exampleOf(a.Inputs))
	return b.String()
}

// onWireOnly returns why an operation cannot be run by name, or "" if it can.
func onWireOnly(op *spec.Operation) string {
	switch {
	case !slices.ContainsFunc(op.Hosts, func(h spec.HostPattern) bool { return !h.Wildcard }):
		return "it names no single host"
	case op.Method == "" || op.Method == "*":
		return "it names no single method"
	case op.Path.IsZero():
		return "it names no path"
	case op.Upgrade != "":
		return "it is a " + op.Upgrade
	}
	return ""
}

// argumentsOf returns the arguments of an operation: its inputs, and the variables
// of its path that are none. What the credential replaces is no argument.
func argumentsOf(op *spec.Operation) []spec.Input {
	isCredential := func(name string) bool {
		return op.Injection != nil && op.Injection.In == spec.InPath && op.Injection.Name == name
	}
	var list []spec.Input
	for _, segment := range strings.Split(op.Path.String(), "/") {
		name, ok := strings.CutPrefix(segment, "{")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
		declared := slices.ContainsFunc(op.Inputs, func(in spec.Input) bool { return in.Name == name })
		if ok && name != "$" && !declared && !isCredential(name) {
			list = append(list, spec.Input{Name: name, In: spec.InPath, Required: true})
		}
	}
	for _, in := range op.Inputs {
		if !isCredential(in.Name) {
			in.Required = in.Required || in.In == spec.InPath
			list = append(list, in)
		}
	}
	return list
}

// writeInputs writes a line for each argument.
func writeInputs(b *strings.Builder, inputs []spec.Input) {
	if len(inputs) == 0 {
		b.WriteString("\nIt has no arguments.\n")
		return
	}
	b.WriteString("\nArguments:\n")
	width := 0
	for _, in := range inputs {
		width = max(width, len(in.Name))
	}
	width = min(width, 32)
	for _, in := range inputs {
		about := cmp.Or(in.Type, "any type")
		if in.In == spec.InPath && in.Type == "" {
			about = "a single value"
		}
		if in.Required {
			about += ", required"
		}
		if len(in.Values) > 0 {
			about += "; " + plain(oneOf(in.Values))
		}
		if text := plain(in.Description); text != "" {
			about += ": " + text
		}
		name := plain(in.Name)
		b.WriteString("  " + name + strings.Repeat(" ", max(0, width-len(name))) + "  " + about + "\n")
	}
}

// exampleOf returns the rest of a command line with the arguments that are
// required, or with the first one if none is.
func exampleOf(inputs []spec.Input) string {
	var pairs []string
	for i, in := range inputs {
		first := i == 0 && !slices.ContainsFunc(inputs, func(in spec.Input) bool { return in.Required })
		if in.Required || first {
			pairs = append(pairs, quoted(plain(in.Name))+":"+exampleValue(in))
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return " --args " + word("{"+strings.Join(pairs, ",")+"}")
}

// exampleValues are values of the types that are no text, as JSON.
var exampleValues = map[string]string{
	"integer": "1", "number": "1.5", "boolean": "true", "array": "[]", "object": "{}",
}

// exampleValue returns a value of an argument, as JSON.
func exampleValue(in spec.Input) string {
	if len(in.Values) > 0 {
		text := plain(strings.TrimPrefix(in.Values[0], "*"))
		if in.Type == "" || in.Type == "string" || !json.Valid([]byte(text)) {
			return quoted(text)
		}
		return text
	}
	return cmp.Or(exampleValues[in.Type], `"TEXT"`)
}
