package shims

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
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

// few is the number of operations up to which a tool's page lists them, and its command has the help of each. Of more,
// the page lists the groups, and the session is asked for the rest: a script of all of it would be megabytes.
const few = 40

// toolHelp writes what TOOL --help prints.
func toolHelp(b *bytes.Buffer, name string, c *spec.Connector, t spec.Tool) {
	put(b, "Usage: ", name, " OPERATION [--args JSON|-] [--json]\n       ", name, " OPERATION --help\n")
	if len(t.Operations) > few {
		put(b, "       ", name, " GROUP --help      the operations of a group\n")
	}
	put(b, "       ", name, " --help WORD...    search in names, summaries, paths and arguments\n\n")
	if text := plain(t.Description); text != "" {
		put(b, name, ": ", text, "\n\n")
	}
	if len(t.Operations) > few {
		put(b, strconv.Itoa(len(t.Operations)), " operations of ", string(c.FQN), " ", plain(c.Version), ", by group:\n")
		writeGroups(b, search.Groups(t.Operations))
		return
	}
	put(b, "Operations of ", string(c.FQN), " ", plain(c.Version), ":\n")
	writeOperations(b, t.Operations)
}

// maxGroups bounds the groups of a page.
const maxGroups = 200

// writeGroups writes the names of groups and how many operations each has, in lines of 80 columns. Of very many, the
// largest are named.
func writeGroups(b *bytes.Buffer, groups []search.Group) {
	rest := 0
	if len(groups) > maxGroups {
		bySize := slices.SortedStableFunc(slices.Values(groups), func(a, b search.Group) int {
			return cmp.Compare(len(b.Operations), len(a.Operations))
		})
		least := len(bySize[maxGroups-1].Operations)
		var kept []search.Group
		for _, g := range groups {
			if n := len(g.Operations); n > least || n == least && len(kept) < maxGroups {
				kept = append(kept, g)
			} else {
				rest += n
			}
		}
		groups = kept
	}
	const width = 80
	column := width
	for i, g := range groups {
		item := g.Name + " (" + strconv.Itoa(len(g.Operations)) + ")"
		if i < len(groups)-1 {
			item += ","
		}
		switch {
		case i == 0:
			b.WriteByte(' ')
			column = 1
		case column+1+len(item) > width:
			b.WriteString("\n ")
			column = 1
		}
		put(b, " ", item)
		column += 1 + len(item)
	}
	b.WriteByte('\n')
	if rest > 0 {
		put(b, "  and ", strconv.Itoa(rest), " operations in smaller groups, which a search finds\n")
	}
}

// writeOperations writes a line for each operation.
func writeOperations(b *bytes.Buffer, operations []*spec.Operation) {
	width := 0
	for _, op := range operations {
		width = max(width, len(op.Name))
	}
	width = min(width, maxColumn)
	for _, op := range operations {
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
	isText := func(in spec.Input) bool { return in.In == spec.InBody && in.Type == "string" }
	if i := slices.IndexFunc(inputs, isText); i >= 0 {
		put(b, "\nA text may come from a file: --file ", plain(inputs[i].Name), "=PATH\n")
	}
	mayHaveBody := op.Method == "POST" || op.Method == "PUT" || op.Method == "PATCH"
	if mayHaveBody && len(op.BodyInputs()) == 0 {
		b.WriteString("It sends no body: a request that needs one is sent with an HTTP client.\n")
	}
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
		_, name, ok := strings.Cut(segment, "{")
		name, _, _ = strings.Cut(name, "}")
		name = strings.TrimSuffix(name, "...")
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
		writeNested(b, in)
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

// maxNested bounds what is written of what nests in an argument, in names.
const maxNested = 12

// writeNested writes what nests in an argument, in a few words.
func writeNested(b *bytes.Buffer, in spec.Input) {
	s := in.Schema
	switch {
	case in.Type == spec.TypeFile:
		put(b, `: --file `, plain(in.Name), `=PATH, or a text or {"base64": …, "filename": …}`)
	case in.Type == spec.TypeFiles:
		put(b, `: --file `, plain(in.Name), `=PATH for each, or a list of texts or {"base64": …, "filename": …}`)
	case s == nil:
		return
	case s.Items != nil && s.Items.Type != "":
		put(b, " of ", s.Items.Type)
		s = s.Items
	}
	if s == nil {
		return
	}
	if len(s.Enum) > 0 {
		put(b, "; one of ", plain(s.Choices()))
	}
	for i, p := range s.Properties[:min(len(s.Properties), maxNested)] {
		if i == 0 {
			b.WriteString(" with ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(plain(p.Name))
		if slices.Contains(s.Required, p.Name) {
			b.WriteString(" (required)")
		}
	}
	if len(s.Properties) > maxNested {
		b.WriteString(", …")
	}
}

// writeExample writes the rest of a command line with the arguments that are
// required, or with the first one if none is.
func writeExample(b *bytes.Buffer, inputs []spec.Input) {
	none := !slices.ContainsFunc(inputs, func(in spec.Input) bool { return in.Required })
	var pairs []string
	for i, in := range inputs {
		switch {
		case !in.Required && (!none || i > 0):
		case in.Type == spec.TypeFile || in.Type == spec.TypeFiles:
			put(b, " --file ", plain(in.Name), "=FILE") // a name needs no quotation marks, but for brackets
		default:
			pairs = append(pairs, quoted(plain(in.Name))+":"+exampleValue(in))
		}
	}
	if len(pairs) > 0 {
		put(b, " --args ", hint.Word("{"+strings.Join(pairs, ",")+"}"))
	}
}

// exampleValues are values of the types that are no text, as JSON.
var exampleValues = map[string]string{
	"integer": "1", "number": "1.5", "boolean": "true", "array": `["TEXT"]`, "object": "{}",
}

// plainJSON returns JSON on one line whose texts are visible characters, or "{}" for others: names and values of an
// enumeration are an author's.
func plainJSON(text string) string {
	line := strings.TrimSpace(text)
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || termsafe.Unsafe(r) }) {
		return "{}"
	}
	return line
}

// exampleValue returns a value of an argument, as JSON.
func exampleValue(in spec.Input) string {
	if len(in.Values) > 0 {
		text := plain(strings.Replace(in.Values[0], "*", "TEXT", 1)) // which stands for at least one character
		if in.Type == "" || in.Type == "string" || !json.Valid([]byte(text)) {
			return quoted(text)
		}
		return text
	}
	if in.Schema != nil {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if enc.Encode(in.Schema.Example("TEXT")) == nil {
			return plainJSON(text.String())
		}
	}
	return cmp.Or(exampleValues[in.Type], `"TEXT"`)
}
