package shims

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
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

// toolHelp writes what TOOL --help prints.
func toolHelp(b *bytes.Buffer, name string, c *spec.Connector, t spec.Tool) {
	put(b, "Usage: ", name, " OPERATION [--args JSON|-] [--json]\n       ", name, " OPERATION --help\n\n")
	if text := plain(t.Description); text != "" {
		put(b, name, ": ", text, "\n\n")
	}
	put(b, "Operations of ", string(c.FQN), " ", plain(c.Version), ":\n")
	width := 0
	for _, op := range t.Operations {
		width = max(width, len(op.Name))
	}
	width = min(width, maxColumn)
	for _, op := range t.Operations {
		put(b, "  ", op.Name)
		if text := plain(cmp.Or(op.Summary, op.Description)); text != "" {
			put(b, padding(op.Name, width), "  ", text)
		}
		b.WriteByte('\n')
	}
}

// maxColumn is the width to which names are filled up, for what follows to stand
// in a column.
const maxColumn = 32

// padding fills a name up to a width.
func padding(name string, width int) string {
	const spaces = "                                "
	return spaces[:max(0, width-len(name))]
}

// operationHelp writes what TOOL OPERATION --help prints. It returns room for the
// arguments of the next one.
func operationHelp(b *bytes.Buffer, name string, op *spec.Operation, room []spec.Input) []spec.Input {
	put(b, "Usage: ", name, " ", op.Name, " [--args JSON|-] [--json]\n\n")
	summary, description := plain(op.Summary), plain(op.Description)
	if summary != "" {
		put(b, op.Name, ": ", summary, "\n")
	}
	if description != "" && description != summary {
		put(b, op.Name, ": ", description, "\n")
	}
	for _, h := range op.Hosts {
		put(b, method(op), " ", origin(h), cmp.Or(op.Path.String(), "/{path...}"), "\n")
	}
	if op.Injection != nil {
		b.WriteString(credentialNote)
	}
	if asks := op.Asks(); asks != "" {
		b.WriteString("It waits for the user's approval")
		if op.Approval == spec.ApprovalWhen {
			put(b, ", ", asks, ", or where that is in doubt")
		}
		b.WriteString(". If that takes too long it ends with 75: run it again later.\n")
	}
	if why := onWireOnly(op); why != "" {
		put(b, "\nThis command cannot run it, as ", why, ": send its requests with an HTTP client.\n")
		return room
	}
	inputs := argumentsOf(op, room)
	writeInputs(b, inputs)
	put(b, "\nExample:\n  ", name, " ", op.Name)
	writeExample(b, inputs)
	b.WriteByte('\n')
	return inputs[:0]
}

// actionHelp writes what NAME --help prints for an action.
func actionHelp(b *bytes.Buffer, name string, a Action) {
	put(b, "Usage: ", name, " [--args JSON|-] [--json]\n\n")
	if text := plain(a.Description); text != "" {
		put(b, name, ": ", text, "\n")
	}
	put(b, "An action of this session, version ", cmp.Or(plain(a.Version), "unknown"), ".\n")
	writeInputs(b, a.Inputs)
	put(b, "\nExample:\n  ", name)
	writeExample(b, a.Inputs)
	b.WriteByte('\n')
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
	case op.MCP != nil:
		return "it is a server of MCP"
	}
	return ""
}

// argumentsOf returns the arguments of an operation: its inputs, and the variables
// of its path that are none. What the credential replaces is no argument. They are
// in room, if it is large enough.
func argumentsOf(op *spec.Operation, room []spec.Input) []spec.Input {
	isCredential := func(name string) bool {
		return op.Injection != nil && op.Injection.In == spec.InPath && op.Injection.Name == name
	}
	list := room[:0]
	for segment := range strings.SplitSeq(op.Path.String(), "/") {
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
func writeInputs(b *bytes.Buffer, inputs []spec.Input) {
	if len(inputs) == 0 {
		b.WriteString("\nIt has no arguments.\n")
		return
	}
	b.WriteString("\nArguments:\n")
	width := 0
	for _, in := range inputs {
		width = max(width, len(in.Name))
	}
	width = min(width, maxColumn)
	for _, in := range inputs {
		name := plain(in.Name)
		put(b, "  ", name, padding(name, width), "  ")
		if in.In == spec.InPath && in.Type == "" {
			b.WriteString("a single value")
		} else {
			b.WriteString(cmp.Or(in.Type, "any type"))
		}
		if in.Required {
			b.WriteString(", required")
		}
		if len(in.Values) > 0 {
			put(b, "; ", plain(oneOf(in.Values)))
		}
		if text := plain(in.Description); text != "" {
			put(b, ": ", text)
		}
		b.WriteByte('\n')
	}
}

// writeExample writes the rest of a command line with the arguments that are
// required, or with the first one if none is.
func writeExample(b *bytes.Buffer, inputs []spec.Input) {
	none := !slices.ContainsFunc(inputs, func(in spec.Input) bool { return in.Required })
	var pairs []string
	for i, in := range inputs {
		if in.Required || none && i == 0 {
			pairs = append(pairs, quoted(plain(in.Name))+":"+exampleValue(in))
		}
	}
	if len(pairs) > 0 {
		put(b, " --args ", hint.Word("{"+strings.Join(pairs, ",")+"}"))
	}
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
