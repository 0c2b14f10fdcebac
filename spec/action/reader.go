package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// The bounds of an action.
const (
	maxDiagnostics = 100
	maxString      = 4096
	maxInputs      = 64
	maxPins        = 16
	maxSteps       = 16
	maxItems       = 256 // of capabilities, values, and lists and tables in args
	maxArgsDepth   = 8
)

// reader turns a decoded frontmatter into an action.
type reader struct {
	places places
	list   []error
	more   int
}

func (r *reader) add(path, format string, args ...any) {
	if len(r.list) == maxDiagnostics {
		r.more++
		return
	}
	if d := diagnostic(r.places.at(path), format, args...); !r.has(d) {
		r.list = append(r.list, d)
	}
}

func (r *reader) has(d *spec.Diagnostic) bool {
	return slices.ContainsFunc(r.list, func(e error) bool { return e.Error() == d.Error() })
}

func (r *reader) err() error {
	if r.more > 0 {
		r.list, r.more = append(r.list, diagnostic("", "and %d more errors", r.more)), 0
	}
	return errors.Join(r.list...)
}

// tableOf is a table of the frontmatter.
type tableOf struct {
	r    *reader
	path string
	keys map[string]any
}

// open checks that v is a table without other keys than those allowed.
func (r *reader) open(v any, path string, allowed ...string) tableOf {
	t := tableOf{r: r, path: path}
	var ok bool
	if t.keys, ok = v.(map[string]any); !ok {
		r.add(path, "%s", missingOr(v, "a table"))
		return t
	}
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		if slices.Contains(allowed, key) {
			continue
		}
		at := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, key) })
		if at >= 0 {
			r.add(t.at(key), "unknown key; use %q, in exactly that case", allowed[at])
			continue
		}
		r.add(t.at(key), "unknown key; there are %s", strings.Join(allowed, ", "))
	}
	return t
}

func missingOr(v any, what string) string {
	if v == nil {
		return "it is missing"
	}
	return "it is not " + what
}

// at returns the path of a key. One that is not plain is quoted, so that it cannot pass for another.
func (t tableOf) at(key string) string {
	if !isPlainKey(key) {
		key = strconv.QuoteToASCII(key[:min(len(key), 100)])
	}
	if t.path == "" {
		return key
	}
	return t.path + "." + key
}

func isPlainKey(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// text reads a string of one line.
func (t tableOf) text(key string, required bool) string {
	v, has := t.keys[key]
	s, ok := v.(string)
	switch {
	case !has && required:
		t.r.add(t.at(key), "it is missing")
	case !has:
	case !ok:
		t.r.add(t.at(key), "it is not a string")
	case s == "" && required:
		t.r.add(t.at(key), "it is empty")
	case len(s) > maxString:
		t.r.add(t.at(key), "it is longer than %d bytes", maxString)
	case !spec.IsLine(s):
		t.r.add(t.at(key), "it has a line break, a control character or an invisible one")
	default:
		return s
	}
	return ""
}

func (t tableOf) flag(key string) bool {
	v, has := t.keys[key]
	b, ok := v.(bool)
	if has && !ok {
		t.r.add(t.at(key), "it is not true or false")
	}
	return b
}

// entries reads a list of at most most entries, of tables too.
func (t tableOf) entries(key string, required bool, most int) []any {
	v, has := t.keys[key]
	var list []any
	switch l := v.(type) {
	case []any:
		list = l
	case []map[string]any:
		for _, entry := range l {
			list = append(list, entry)
		}
	default:
		if has {
			t.r.add(t.at(key), "it is not a list")
			return nil
		}
	}
	switch {
	case required && len(list) == 0:
		t.r.add(t.at(key), "it is missing, or has no entry")
	case len(list) > most:
		t.r.add(t.at(key), "it has more than %d entries", most)
		list = list[:most]
	}
	return list
}

// words reads a list of strings.
func (t tableOf) words(key string, required bool) []string {
	var words []string
	for i, v := range t.entries(key, required, maxItems) {
		at := fmt.Sprintf("%s[%d]", t.at(key), i)
		s, ok := v.(string)
		switch {
		case !ok:
			t.r.add(at, "it is not a string")
		case len(s) > maxString || !spec.IsLine(s):
			t.r.add(at, "it has a line break, a control character or an invisible one, or is too long")
		case slices.Contains(words, s):
			t.r.add(at, "%q appears twice", s)
		default:
			words = append(words, s)
		}
	}
	return words
}

func (r *reader) action(raw map[string]any) *Action {
	top := r.open(raw, "", "action", "inputs", "requires", "execute")
	head := r.open(top.keys["action"], "action", "name", "version", "description")
	a := &Action{Name: head.text("name", true), Version: head.text("version", true),
		Description: head.text("description", true)}
	if a.Name != "" {
		if err := spec.CheckCommandName(a.Name); err != nil {
			r.add("action.name", "%v", err)
		}
	}
	if a.Version != "" && !spec.IsVersion(a.Version) {
		r.add("action.version", "%q is not a MAJOR.MINOR.PATCH version", a.Version)
	}
	for i, v := range top.entries("inputs", false, maxInputs) {
		r.input(a, v, fmt.Sprintf("inputs[%d]", i))
	}
	requires := r.open(top.keys["requires"], "requires", "connectors")
	if requires.keys != nil {
		for i, v := range requires.entries("connectors", true, maxPins) {
			r.pin(a, v, fmt.Sprintf("requires.connectors[%d]", i))
		}
	}
	for i, v := range top.entries("execute", true, maxSteps) {
		r.step(a, v, fmt.Sprintf("execute[%d]", i))
	}
	r.checkUses(a)
	return a
}

func (r *reader) input(a *Action, v any, path string) {
	t := r.open(v, path, "name", "type", "required", "description", "values")
	if t.keys == nil {
		return
	}
	in := spec.Input{Name: t.text("name", true), Type: t.text("type", false), Required: t.flag("required"),
		Description: t.text("description", false), Values: t.words("values", false)}
	switch {
	case in.Name == "":
	case !spec.IsInputName(in.Name):
		r.add(t.at("name"), "%q is not letters, digits, dots, dashes, underscores and colons", in.Name)
	case slices.ContainsFunc(a.Inputs, func(o spec.Input) bool { return o.Name == in.Name }):
		r.add(t.at("name"), "%q appears twice", in.Name)
	}
	if in.Type != "" && !slices.Contains(spec.InputTypes(), in.Type) {
		r.add(t.at("type"), "%q is not one of %s", in.Type, strings.Join(spec.InputTypes(), ", "))
	}
	a.Inputs = append(a.Inputs, in)
}

func (r *reader) pin(a *Action, v any, path string) {
	t := r.open(v, path, "name", "version", "hash", "capabilities")
	if t.keys == nil {
		return
	}
	p := Pin{Version: t.text("version", true), Hash: t.text("hash", true), Capabilities: t.words("capabilities", true)}
	if name := t.text("name", true); name != "" {
		var err error
		if p.FQN, err = spec.ParseFQN(name); err != nil {
			r.add(t.at("name"), "%v", err)
		}
	}
	if _, twice := a.pin(p.FQN); twice && p.FQN != "" {
		r.add(t.at("name"), "%s appears twice; an action uses one version of a connector", p.FQN)
	}
	if p.Version != "" && !spec.IsVersion(p.Version) {
		r.add(t.at("version"), "%q is not a MAJOR.MINOR.PATCH version; there are no ranges and no latest", p.Version)
	}
	if p.Hash != "" && !spec.IsDigest(p.Hash) {
		r.add(t.at("hash"), "%q is not sha256: and 64 hexadecimal digits, as aileron connector show prints it", p.Hash)
	}
	for i, c := range p.Capabilities {
		tool, name, _ := cutCapability(c)
		if !spec.IsOperationName(name) || tool != "" && !spec.IsOperationName(tool) {
			r.add(fmt.Sprintf("%s[%d]", t.at("capabilities"), i),
				"%q is not the name of an operation, as issues.get or TOOL/issues.get; there are no wildcards", c)
		}
	}
	a.Requires = append(a.Requires, p)
}

// cutCapability returns the tool, if one is named, and the operation that a capability names.
func cutCapability(c string) (tool, operation string, withTool bool) {
	if tool, operation, withTool = strings.Cut(c, "/"); withTool {
		return tool, operation, true
	}
	return "", c, false
}

func (r *reader) step(a *Action, v any, path string) {
	t := r.open(v, path, "connector", "tool", "operation", "args")
	if t.keys == nil {
		return
	}
	s := Step{Tool: t.text("tool", true), Operation: t.text("operation", true), args: &table{}}
	if name := t.text("connector", false); name != "" {
		s.Connector = spec.FQN(name)
		if _, ok := a.pin(s.Connector); !ok {
			r.add(t.at("connector"), "%s is not among requires.connectors", strconv.Quote(name))
		}
	}
	if len(a.Requires) == 1 && s.Connector == "" {
		s.Connector = a.Requires[0].FQN
	}
	if args, has := t.keys["args"]; has {
		b := builder{r: r, inputs: a.Inputs}
		if s.args = b.table(args, t.at("args"), 0); s.args == nil {
			s.args = &table{}
		}
	}
	a.Steps = append(a.Steps, s)
}

// checkUses checks that every input is used: an argument that has no effect is a mistake of the author.
func (r *reader) checkUses(a *Action) {
	used := map[string]bool{}
	for _, s := range a.Steps {
		s.args.names(used)
	}
	for i, in := range a.Inputs {
		if in.Name != "" && !used[in.Name] && len(r.list) == 0 {
			r.add(fmt.Sprintf("inputs[%d].name", i), "no step uses it: write ${args.%s} in the args of one", in.Name)
		}
	}
}

// checkBody checks that a person sees all of the text that an agent gets.
func (r *reader) checkBody(body string, linesBefore int) {
	line := linesBefore
	for text := range strings.Lines(body) {
		line++
		text = strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\t", " ")
		if !spec.IsLine(text) {
			r.list = append(r.list, diagnostic(fmt.Sprintf("line %d", line),
				"the text has a control character or an invisible one"))
			return
		}
	}
}
