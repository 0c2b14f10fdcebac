package shims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

const (
	// maxText bounds a text of a connector's author, in runes.
	maxText = 240
	// maxTools bounds the file of [Set.ToolsFile], in bytes. It is read before
	// every first request, and then stays in a conversation.
	maxTools = 32 << 10
	// maxHosts bounds the hosts in it.
	maxHosts = 8 << 10
)

// ToolsFile returns /etc/aileron/tools.txt: a line for each tool and each action,
//
//	name  fqn -- Aileron connector operations: a, b
//
// the rules, and the hosts that other clients may use. It has at most 32 KiB: of
// many operations, the groups are named, with the shortest names of each as there
// is room, and how to search. The same connectors result in the same
// bytes, whatever their order. A text of a connector's author is bounded and on
// one line, without control or formatting characters, so that it cannot pass for
// a line of aileron.
func (s Set) ToolsFile() []byte {
	connectors := sorted(s.Connectors)
	end := rules + hostsOf(connectors) + placeholdersOf(connectors) + s.unboundTools(connectors)
	if len(connectors) == 0 && len(s.Actions) == 0 {
		return []byte(rules + "\nNo connector is installed: nothing is allowed.\n")
	}
	room := maxTools - len(end) - 1
	var lines []string
	for _, names := range []int{1 << 20, 64, 32, 16, 8, 4, 2, 1, 0} {
		most := room // more is not read
		if names == 0 {
			most = math.MaxInt
		}
		if lines = s.lines(connectors, names, most); sizeOf(lines) <= room {
			return []byte(strings.Join(lines, "") + "\n" + end)
		}
	}
	all := len(lines)
	for more := ""; sizeOf(lines)+len(more) > room; {
		lines = lines[:len(lines)-1]
		more = fmt.Sprintf("… %d more, see %s\n", all-len(lines), Dir)
		if sizeOf(lines)+len(more) <= room {
			lines = append(lines, more)
			break
		}
	}
	return []byte(strings.Join(lines, "") + "\n" + end)
}

// lines returns the lines of the tools and the actions, with at most so many
// operations named in each. Of more than most bytes, the last lines are left out.
func (s Set) lines(connectors []*spec.Connector, names, most int) []string {
	var lines []string
	size := 0
	for _, c := range connectors {
		for _, t := range c.Tools {
			name := s.command(t.Name)
			line := fmt.Sprintf("%s  %s -- Aileron connector operations: %s\n", name, c.FQN, operationNames(name, t, names))
			lines = append(lines, line)
			if size += len(line); size > most {
				return lines
			}
		}
	}
	for _, a := range s.Actions {
		line := fmt.Sprintf("%s  action -- %s", s.command(a.Name), plain(a.Description))
		if names == 0 {
			line = s.command(a.Name) + "  action"
		}
		lines = append(lines, strings.TrimSuffix(line, " -- ")+"\n")
	}
	return lines
}

func sizeOf(lines []string) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// operationNames returns the names of the operations of a tool, or of more than most, its groups and how to search:
// with names of each group if most leaves room for two of each, else with how many operations it has.
func operationNames(command string, t spec.Tool, most int) string {
	all := t.Operations
	if len(all) <= most {
		var list []string
		for _, op := range all {
			list = append(list, op.Name+asks(op))
		}
		return strings.Join(list, ", ")
	}
	more := fmt.Sprintf("%d; %s --help WORD... finds one", len(all), command)
	groups := search.Groups(all)
	if most == 0 {
		return more
	}
	slices.SortStableFunc(groups, func(a, b search.Group) int {
		return cmp.Compare(len(b.Operations), len(a.Operations))
	})
	var list []string
	each := most / len(groups)
	for _, g := range groups[:min(most, len(groups))] {
		text := fmt.Sprintf("%s (%d)", g.Name, len(g.Operations))
		if each >= 2 {
			text += ": " + strings.Join(plainest(g.Operations, each), " ")
		}
		list = append(list, text)
	}
	if rest := len(groups) - len(list); rest > 0 {
		list = append(list, fmt.Sprintf("and %d more groups", rest))
	}
	return more + "; by group: " + strings.Join(list, ", ")
}

// plainest returns the shortest names of operations, at most so many: issues.get, not issues.get-event.
func plainest(operations []*spec.Operation, most int) []string {
	var names []string
	for _, op := range operations {
		names = append(names, op.Name+asks(op))
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	return names[:min(most, len(names))]
}

// asks returns whether an operation waits for the user's approval, behind its name: not when, as the values of its
// conditions are a publisher's words.
func asks(op *spec.Operation) string {
	switch op.Approval {
	case spec.ApprovalRequired:
		return " (asks)"
	case spec.ApprovalWhen:
		return " (asks sometimes)"
	}
	return ""
}

// sorted returns connectors in an order that does not depend on theirs.
func sorted(connectors []*spec.Connector) []*spec.Connector {
	return slices.SortedFunc(slices.Values(connectors), func(a, b *spec.Connector) int {
		return cmp.Or(cmp.Compare(a.FQN, b.FQN), spec.CompareVersions(a.Version, b.Version))
	})
}

const rules = `The names above are commands, one for each connector and each action:
  NAME --help              its operations; for an action, its arguments
  NAME --help WORD...      those with all of the words in name, summary, path or arguments
  NAME OPERATION --help    the arguments of an operation, and an example
  NAME OPERATION --args '{"name":"value"}'
Any other client, such as git, npm or curl, may send the same requests. Everything that this sandbox
sends passes Aileron, which adds credentials: there is none to find in here, and none to ask for.
Any other request is refused with status 403, and JSON whose "message" says what to do next, unless the
person who started this session lets others pass. Sending it again does not help.
SSH does not leave this sandbox: use https:// URLs with git. Those of git@HOST: and ssh:// become https://
where the host's repositories are allowed.
This file and the commands follow what the person allows while the sandbox runs: look again after a change.
This session: curl -H "Authorization: Bearer $AILERON_TOKEN" "$AILERON_API_URL/session"
`

// hostsOf returns the hosts of all operations, for clients other than ours.
func hostsOf(connectors []*spec.Connector) string {
	var list []string
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				for _, h := range op.Hosts {
					list = append(list, strings.TrimPrefix(origin(h), "https://"))
				}
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 0 {
		return ""
	}
	return "Hosts: " + within(list, maxHosts) + "\n"
}

// placeholdersOf returns the variables that hold placeholders.
func placeholdersOf(connectors []*spec.Connector) string {
	var list []string
	for _, c := range connectors {
		for _, p := range c.Placeholders {
			list = append(list, p.Env)
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return ""
	}
	return "Placeholders, worth nothing, which Aileron replaces: " + within(slices.Compact(list), maxHosts/4) + "\n"
}

// unboundTools names the commands whose requests are refused for want of a credential.
func (s Set) unboundTools(connectors []*spec.Connector) string {
	var list []string
	for _, c := range connectors {
		if slices.Contains(s.Unbound, c.FQN) {
			for _, t := range c.Tools {
				list = append(list, s.command(t.Name))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "Refused at this moment, as the person has bound no credential or locked it: " + within(list, maxHosts/4) + "\n"
}

// within returns a list as one line of about so many bytes.
func within(list []string, most int) string {
	var b strings.Builder
	for i, item := range list {
		if b.Len()+len(item) > most {
			fmt.Fprintf(&b, " … %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(item)
	}
	return b.String()
}

// oneOf returns the values that an input may have, the first of many.
func oneOf(values []string) string {
	const most = 10
	text := strings.Join(values[:min(len(values), most)], " or ")
	if more := len(values) - most; more > 0 {
		text += fmt.Sprintf(" or %d more", more)
	}
	return text
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

// plain returns an author's text as one line of visible characters.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	if text, ok := plainASCII(s); ok {
		return text
	}
	return plainOf(s)
}

// plainOf does what plain does, for any text.
func plainOf(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar || termsafe.Unsafe(r) {
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

// plainASCII does what plain does for printable ASCII, which the long descriptions of thousands of operations are, at a
// tenth of the cost. It reports false for another text.
func plainASCII(s string) (string, bool) {
	var room [maxText]byte
	out, space := room[:0], false
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return "", false
		case c == ' ':
			space = len(out) > 0
			continue
		}
		if space && len(out) < maxText {
			out = append(out, ' ')
		}
		if len(out) == maxText {
			return string(out) + "…", true
		}
		out, space = append(out, s[i]), false
	}
	return string(out), true
}

// isPlain reports whether a text is short printable ASCII with single spaces, as
// most are.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			return false
		}
	}
	return len(s) <= maxText
}

// Notes returns what an agent is told about its sandbox before its first prompt:
// short, because it is part of every conversation, and the same in every session.
// What may be requested is in the file of [ToolsFile].
func Notes() []byte { return []byte(notes) }

const notes = `# This is an Aileron sandbox

Everything that is sent from here passes Aileron, which allows only some requests, unless the person who started it lets
others pass. /etc/aileron/tools.txt lists them: read it before you use a service or install a package. Each connector in
it is a command: NAME --help.

- A request that is refused gets status 403, and JSON whose "message" says why. Sending it again or in another way does
  not help. Tell the person what was refused: "aileron allow HOST", on the machine outside of this sandbox, allows it.
- Credentials are added to requests after they have left the sandbox. Variables such as API keys and tokens hold
  placeholders, which work where a request is allowed. There is no key to look for here, and none to ask for.
- gh: most of its commands need POST https://api.github.com/graphql, which may be refused. git, "gh api" with a path of
  the REST API, and the command github, if there is one, do without: github pulls.create --help. What merges, reviews,
  locks or deletes may wait for the person's approval, and ends with HTTP 403 if none comes: ask, and run it again.
- Files of the project stay. All others are lost when the sandbox ends, except for your own state.
`
