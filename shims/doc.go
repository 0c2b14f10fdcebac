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
package shims
