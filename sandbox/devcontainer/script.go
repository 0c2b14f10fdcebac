package devcontainer

import (
	"fmt"
	"slices"
	"strings"
)

// Script returns a script for sh that takes away the variables of unset and runs the commands in their order, those of
// one phase at once. Output goes to stderr: stdout is the agent's. What fails ends the script with its exit code, and
// so does a signal while a command runs: it is 128 and its number. It is "" where there is nothing to do. With the
// variables of the plan it has at most 96 KiB.
//
// A command gets no input. The positional parameters are kept.
func (p *Plan) Script(unset []string) string {
	if len(p.Commands) == 0 {
		return unsetScript(unset)
	}
	var s strings.Builder
	s.WriteString(unsetScript(unset))
	// A shell without job control starts what is in the background with SIGINT ignored. It is the end of the script that
	// ends them: it is the first process of the sandbox.
	s.WriteString("trap 'echo \"aileron: interrupted\" >&2; exit 130' INT\ntrap 'exit 143' TERM\ntrap 'exit 129' HUP\n")
	for _, c := range p.Commands {
		s.WriteString(c.script())
	}
	s.WriteString("trap - INT TERM HUP\n")
	return s.String()
}

// unsetScript returns what takes variables away.
func unsetScript(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "unset " + strings.Join(names, " ") + "\n"
}

// script returns what runs the parts of a command and waits for all.
func (c Command) script() string {
	var s strings.Builder
	fmt.Fprintf(&s, "echo %s >&2\n", quote("aileron: "+c.Title()))
	for i, part := range c.Parts {
		fmt.Fprintf(&s, "( %s ) </dev/null >&2 &\naileron_%d=$!\n", part.exec(), i)
	}
	for i, part := range c.Parts {
		name := c.Title()
		if part.Name != "" {
			name += "." + part.Name
		}
		fmt.Fprintf(&s, "wait \"$aileron_%d\" || {\naileron_code=$?\necho %s\"$aileron_code\" >&2\n"+
			"exit \"$aileron_code\"\n}\n", i, quote("aileron: "+name+" failed, so the command does not start: exit code "))
	}
	return s.String()
}

// exec returns what a shell runs for a part.
func (p Part) exec() string {
	args := p.Argv()
	for i, arg := range args {
		args[i] = quote(arg)
	}
	return "exec " + strings.Join(args, " ")
}

// Argv returns the program of a part and its arguments.
func (p Part) Argv() []string {
	if p.Args != nil {
		return slices.Clone(p.Args)
	}
	return []string{"/bin/sh", "-c", p.Shell}
}

// quote returns text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
