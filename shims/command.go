// Package shims makes what a sandbox has of the installed connectors and actions:
// a command for each of them, and the list that its agent reads.
//
// [Set.Commands] returns the commands, one POSIX shell script for each tool of a
// connector and for each action:
//
//	set := shims.Set{Connectors: connectors, Actions: actions}
//	if err := set.Conflict("claude"); err != nil {
//		return err
//	}
//	for _, c := range set.Commands() {
//		put(path.Join(shims.Dir, c.Name), c.Script)
//	}
//
// A command posts the operation and its arguments to the session's API and prints
// the response. It grants nothing: the proxy decides by the specifications
// themselves, and a sandbox may send the same request without it. No value passes
// through an evaluation by the shell, and a text of an author is one line without
// control characters.
//
// [Set.ToolsFile] returns /etc/aileron/tools.txt, and [Notes] what an agent reads
// before its first prompt.
//
// [Lookup] is the help that a command asks the session for: searches, groups, and the operations of a tool with many.
//
// This file makes the scripts, around run.sh, which they share; help.go is what they
// print, lookup.go what the session prints for them, and tools.go the texts for agents.
package shims

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// Dir is where a sandbox has its commands.
const Dir = "/usr/local/bin"

// runScript is what all commands have in common.
//
//go:embed run.sh
var runScript string

// Action is an installed action, as far as its command has to know it.
type Action struct {
	Name, Version, Description string
	Inputs                     []spec.Input
}

// Command is a command of the sandbox: a POSIX shell script that sends a request
// to the session's API.
type Command struct {
	Name   string // in Dir; see Set.Names
	Script []byte // what it does
}

// Starter returns the program in Dir, where the script is a file of the same name in another directory. It is the same
// for every command, so that the files of many can be one.
func (c Command) Starter(dir string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# A command of this sandbox, by its own name. Written by aileron.
. %s/"${0##*/}"
`, hint.Word(dir))
}

// Gone returns the script of a command that a sandbox had, and that is none of its session any more.
func Gone(name string) []byte {
	return fmt.Appendf(nil,
		"#!/bin/sh\n# A command that this sandbox had. Written by aileron.\nprintf '%%s\\n' %s %s >&2\nexit 127\n",
		hint.Word(name+": not found: this session has no such connector or action any more"),
		hint.Word("hint: /etc/aileron/tools.txt lists what it has now"))
}

// Set is what the commands of a sandbox are made of.
type Set struct {
	Connectors []*spec.Connector
	Actions    []Action
	Unbound    []spec.FQN // connectors without the credential that their operations need
	// Names are those of commands that are not called as their tool or action is,
	// by the name of that: another program of the sandbox has it.
	Names map[string]string
}

// command returns the name of the command of a tool or an action.
func (s Set) command(name string) string {
	if other := s.Names[name]; other != "" {
		return other
	}
	return name
}

// Commands returns a command for each tool and each action.
func (s Set) Commands() []Command {
	var list []Command
	for _, c := range sorted(s.Connectors) {
		for _, t := range c.Tools {
			name := s.command(t.Name)
			list = append(list, Command{name, toolScript(name, c, t)})
		}
	}
	for _, a := range s.Actions {
		name := s.command(a.Name)
		list = append(list, Command{name, actionScript(name, a)})
	}
	return list
}

// toolScript returns the command of a tool.
func toolScript(name string, c *spec.Connector, t spec.Tool) []byte {
	var b bytes.Buffer
	listed := t.Operations // whose help is in the script
	if len(listed) > few {
		listed = nil
	}
	b.Grow(len(runScript) + 800*(len(listed)+1) + 40*len(t.Operations))
	fmt.Fprintf(&b, "#!/bin/sh\n# The operations of %s %s, as a command. Written by aileron.\n", c.FQN, plain(c.Version))
	fmt.Fprintf(&b, "name=%s endpoint=connector-operations/run operations=1\n", hint.Word(name))
	b.WriteString("is_operation() {\n\tcase $1 in\n")
	for _, op := range t.Operations {
		put(&b, "\t", hint.Word(op.Name), ") ;;\n")
	}
	b.WriteString("\t*) return 1 ;;\n\tesac\n}\n")
	body := fmt.Sprintf(`{"connector_fqn":%s,"tool":%s,"operation":"`, quoted(string(c.FQN)), quoted(t.Name))
	fmt.Fprintf(&b, "begin() { printf '%%s%%s%%s' %s \"$1\" '\",\"args\":'; }\n", hint.Word(body))
	ask := fmt.Sprintf(`{"connector_fqn":%s,"tool":%s,"command":%s,"words":[`, quoted(string(c.FQN)), quoted(t.Name),
		quoted(name))
	fmt.Fprintf(&b, "ask() { printf '%%s%%s]}' %s \"$1\"; }\n", hint.Word(ask))
	if len(listed) > 0 {
		b.WriteString("listed=1\n")
	} else {
		b.WriteString("listed=''\n")
	}
	b.WriteString(runScript)
	b.WriteString("\ncase $operation in\n'')\n")
	writeHelp(&b, func() { toolHelp(&b, name, c, t) })
	var room []spec.Input
	for _, op := range listed {
		put(&b, "\t;;\n", hint.Word(op.Name), ")\n")
		writeHelp(&b, func() { room = operationHelp(&b, name, op, room) })
	}
	b.WriteString("\t;;\nesac\n")
	writeHelp(&b, func() { b.WriteString(exits) })
	return b.Bytes()
}

// actionScript returns the command of an action.
func actionScript(name string, a Action) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#!/bin/sh\n# The action %s %s, as a command. Written by aileron.\n", plain(a.Name), plain(a.Version))
	fmt.Fprintf(&b, "name=%s endpoint=actions/run operations=''\n", hint.Word(name))
	b.WriteString("is_operation() { return 1; }\nask() { :; }\nlisted=''\n")
	fmt.Fprintf(&b, "begin() { printf '%%s' %s; }\n", hint.Word(fmt.Sprintf(`{"action":%s,"args":`, quoted(a.Name))))
	b.WriteString(runScript + "\n")
	writeHelp(&b, func() { actionHelp(&b, name, a) })
	writeHelp(&b, func() { b.WriteString(exits) })
	return b.Bytes()
}

// endOfHelp ends a help text in a script. No line of one is like it.
const endOfHelp = "END_OF_HELP"

// writeHelp writes the command that prints the help text that write writes, which
// the shell neither expands nor evaluates: the delimiter of the here-document is
// quoted.
func writeHelp(b *bytes.Buffer, write func()) {
	b.WriteString("\tcat <<'" + endOfHelp + "'\n")
	begin := b.Len()
	write()
	text := b.Bytes()[begin:]
	if bytes.HasPrefix(text, []byte(endOfHelp+"\n")) || bytes.Contains(text, []byte("\n"+endOfHelp+"\n")) {
		panic("shims: a line of a help text ends it")
	}
	b.WriteString(endOfHelp + "\n")
}

// put writes texts one after the other. There are tens of thousands, and fmt takes
// several times as long.
func put(b *bytes.Buffer, texts ...string) {
	for _, text := range texts {
		b.WriteString(text)
	}
}

// quoted returns s as a string of JSON.
func quoted(s string) string {
	if isPlain(s) && !strings.ContainsAny(s, "\"\\<>&") {
		return `"` + s + `"`
	}
	out, _ := json.Marshal(s) // a string marshals
	return string(out)
}

// ToolNames returns the names of all tools and actions.
func (s Set) ToolNames() []string {
	var names []string
	for _, c := range s.Connectors {
		for _, t := range c.Tools {
			names = append(names, t.Name)
		}
	}
	for _, a := range s.Actions {
		names = append(names, a.Name)
	}
	return names
}

// source is what a command comes from, and the command line that removes it.
type source struct{ what, remove string }

// remedy returns how to end a conflict of two sources.
func (s source) remedy(other source) string {
	if other.remove == "" || other.remove == s.remove {
		return s.remove
	}
	return "remove one of them: " + other.remove + ", or " + s.remove
}

// Conflict returns an error if two connectors, two actions, or a connector and an
// action have a command of the same name, or one of them has that of the agent,
// the command of the sandbox. Names that differ only in case are the same, as on
// some file systems. The error names both, and what to do.
func (s Set) Conflict(agent string) error {
	owners := map[string]source{}
	add := func(name string, is source) error {
		lower := strings.ToLower(name)
		other, taken := owners[lower]
		if !taken {
			owners[lower] = is
			return nil
		}
		return hint.New(fmt.Errorf("the command %q of %s is also the command of %s", name, is.what, other.what),
			"%s", is.remedy(other))
	}
	_ = add(path.Base(agent), source{what: "this session: " + plain(agent)})
	for _, c := range sorted(s.Connectors) {
		for _, t := range c.Tools {
			what := fmt.Sprintf("the connector %s %s", c.FQN, c.Version)
			if err := add(t.Name, source{what, "aileron connector remove " + string(c.FQN)}); err != nil {
				return err
			}
		}
	}
	for _, a := range s.Actions {
		if err := add(a.Name, source{"the action " + a.Name, "aileron action remove " + a.Name}); err != nil {
			return err
		}
	}
	return nil
}
