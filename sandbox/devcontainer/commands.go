package devcontainer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// phases returns the commands of a container's life that run in it, in their order. A sandbox is a new container each
// time, so each of them runs at each start.
func phases() []string {
	return []string{"onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand",
		"postAttachCommand"}
}

const (
	// maxScript bounds the script of all commands, in bytes. It is one argument of a process, which may have 128 KiB with
	// what the agent's own start adds.
	maxScript = 96 << 10
	// maxParts bounds what runs at once.
	maxParts = 64
)

// useCommands puts the commands in the sandbox in force.
func (c *composer) useCommands() {
	size := len(unsetScript(c.plan.Unset))
	for _, phase := range phases() {
		for _, command := range c.commandsOf(phase) {
			if size += len(command.script()); size > maxScript {
				c.refuse(phase, fmt.Sprintf("with it the commands have more than %d KiB, as a shell gets them", maxScript>>10),
					"put it into a script of the project, and run that")
				return
			}
			c.plan.Commands = append(c.plan.Commands, command)
		}
	}
	if len(c.plan.Commands) == 0 && size > maxScript {
		c.refuse("remoteEnv", fmt.Sprintf("the names of the variables that it takes away have more than %d KiB",
			maxScript>>10), "take fewer away")
	}
}

// commandsOf returns the commands of a phase: those of features come first, in the order of these.
func (c *composer) commandsOf(phase string) (all []Command) {
	for _, command := range c.featureCommands {
		if command.Phase == phase {
			all = append(all, command)
		}
	}
	if value := c.doc.root[phase]; value != nil {
		if command := c.command(phase, value); len(command.Parts) > 0 {
			all = append(all, command)
		}
	}
	return all
}

// useHostCommand notes the command that runs on this host.
func (c *composer) useHostCommand(name string, value any) {
	if command := c.command(name, value); len(command.Parts) > 0 {
		c.plan.OnHost = &command
	}
}

// command reads a string for a shell, the list of a program and its arguments, or an object of these.
func (c *composer) command(phase string, value any) Command {
	command := Command{Phase: phase}
	object, ok := value.(map[string]any)
	if !ok {
		if part, ok := c.part(phase, value); ok {
			command.Parts = append(command.Parts, part)
		}
		return command
	}
	if len(object) > maxParts {
		c.refuse(phase, fmt.Sprintf("it runs more than %d programs at once", maxParts), "run them in a script of the project")
		return command
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !printable(name) {
			c.refuse(phase, "a name has a character that cannot be seen", "remove the character")
			continue
		}
		if part, ok := c.part(phase+"."+name, object[name]); ok {
			part.Name = name
			command.Parts = append(command.Parts, part)
		}
	}
	return command
}

// part reads one program. One that is empty does not run.
func (c *composer) part(property string, value any) (Part, bool) {
	switch v := value.(type) {
	case string:
		return Part{Shell: v}, v != "" && c.passable(property, v)
	case []any:
		var args []string
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				c.mistyped(property, "a list of strings")
				return Part{}, false
			}
			if !c.passable(property, s) {
				return Part{}, false
			}
			args = append(args, s)
		}
		return Part{Args: args}, len(args) > 0
	}
	c.mistyped(property, "a string, a list of strings or an object of these")
	return Part{}, false
}

// passable refuses text that no process can get.
func (c *composer) passable(property, text string) bool {
	if strings.ContainsRune(text, 0) {
		c.refuse(property, "it has a zero byte", "remove the byte")
		return false
	}
	return true
}
