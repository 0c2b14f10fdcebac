// Package report prints the end of a session: what it did, what was refused, and what would allow it. Open [Print]
// first.
package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// The most lines of a kind that the report at the end of a session has.
const maxEndedLines = 12

// Print prints what happened in a session: the requests by verdict, what each credential was used for, and what
// was refused, with the command that would allow it.
func Print(c *console.Console, e launch.Ended) {
	r := e.Requests
	c.Infof("aileron: session %s of %s ended after %s, exit code %d", e.Session, e.Agent, roundDuration(e.Duration),
		e.ExitCode)
	line := func(name, format string, args ...any) { reportLine(c, name, fmt.Sprintf(format, args...)) }
	command := func(name, text string) { c.Infof("  %-11s %s", name, text) } // to be copied: not folded
	line("requests", "%d proxied, %d passed through, %d refused or failed", r.Proxied, r.Passthrough, r.Rejected)
	for i, use := range usesByBinding(r.Uses) {
		if i == maxEndedLines {
			line("", "and more")
			break
		}
		line(first(i, "credentials"), "%s", use)
	}
	if r.MoreUses > 0 {
		line("", "%d further requests with credentials", r.MoreUses)
	}
	for i, u := range r.Spent {
		if i == maxEndedLines {
			line("", "and %s", hint.Plural(len(r.Spent)-i, "other model"))
			break
		}
		line(first(i, "used"), "%s: %s", cmp.Or(u.Name, "model not known"), u.Text())
	}
	if r.Redactions > 0 {
		line("redacted", "%s of secrets in responses", hint.Plural(r.Redactions, "occurrence"))
	}
	if a := r.Approvals; a.Requested > 0 {
		line("approvals", "%d asked, %d approved, %d denied, %d expired", a.Requested, a.Approved, a.Denied, a.Expired)
	}
	for i, f := range r.Refusals {
		if i == maxEndedLines {
			line("", "and %d more kinds", len(r.Refusals)-i)
			break
		}
		line(first(i, "refused"), "%s", refusalText(f))
		if what := cmp.Or(callRemedy(f), Remedy(f)); what != "" {
			command("", "  "+what)
		}
	}
	for i, name := range r.Unrenewed {
		line(first(i, "login"), "%s: its token could not be renewed; log in again: aileron binding rebind %s", name, name)
	}
	if len(r.Optional) > 0 {
		line("unneeded", "%s", optionalText(e.Agent, r.Optional))
	}
	for i, text := range HostFileLines(e.Changed) {
		line(first(i, "host files"), "%s", text)
	}
	if e.Incomplete {
		line("", "the project is larger than what was searched for files that your host runs")
	}
	if agent, ok := agents.Find(e.Agent); ok && e.Kept {
		command("go on", "aileron launch "+agent.Name+" -- "+strings.Join(agent.Resume, " "))
	}
	command("more", "aileron audit list --session "+e.Session)
}

// reportLine prints a line of the report. On a terminal it is folded below its text: what an agent chose, such as the
// name of a file, must not begin a line, where it would look like one of aileron's.
func reportLine(c *console.Console, name, text string) {
	const indent = 14
	parts := []string{text}
	if columns := c.Columns(); c.MessagesOnTerminal() && columns > 2*indent {
		parts = console.Folded(termsafe.Line(text), columns-indent)
	}
	for _, part := range parts {
		c.Infof("  %-11s %s", name, part)
		name = ""
	}
}

// IsUneventful reports whether a command sent nothing, and changed no file that the host would run.
func IsUneventful(e launch.Ended) bool {
	r := e.Requests
	return r.Proxied+r.Passthrough+r.Rejected == 0 && len(e.Changed) == 0
}

// first returns the name of a group for its first line, and "" for the others.
func first(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

// roundDuration returns d for a person: whole seconds from ten seconds on.
func roundDuration(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// usesByBinding returns a line for each credential, in the order of its most frequent operation.
func usesByBinding(uses []session.Use) []string {
	var order []string
	operations, requests := map[string][]string{}, map[string]int{}
	for _, u := range uses {
		if requests[u.Binding] == 0 {
			order = append(order, u.Binding)
		}
		requests[u.Binding] += u.Requests
		operations[u.Binding] = append(operations[u.Binding], fmt.Sprintf("%s %s %d", u.Tool, u.Operation, u.Requests))
	}
	var lines []string
	for _, binding := range order {
		ops, more := operations[binding], ""
		if len(ops) > maxEndedLines {
			ops, more = ops[:maxEndedLines], ", …"
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s%s)", binding, hint.Plural(requests[binding], "request"),
			strings.Join(ops, ", "), more))
	}
	return lines
}

// refusalText returns what was refused, how often, and why.
func refusalText(f session.Refusal) string {
	what := f.Host
	if f.Port != 443 && f.Port != 0 {
		what += ":" + strconv.Itoa(f.Port)
	}
	switch {
	case f.Call != "" && f.Host == proxy.APIHost: // it made no request
		what = f.Call
	case f.Call != "":
		what = f.Call + " at " + what
	default:
		what = cmp.Or(strings.TrimSpace(f.Method+" "+what+f.Path), "a client")
	}
	return fmt.Sprintf("%d × %s: %s", f.Requests, what, f.Reason)
}

// optionalText returns what was refused without harm to the agent.
func optionalText(agent string, refused []session.Refusal) string {
	n, hosts := 0, []string(nil)
	for _, f := range refused {
		n += f.Requests
		if !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
	}
	return fmt.Sprintf("%s by %s itself (%s): it works without", hint.Plural(n, "refused request"), agent,
		strings.Join(hosts, ", "))
}

// HostFileLines returns a line for each file that the host would run and that was changed, and one for all programs.
func HostFileLines(changes []hostfiles.Change) []string {
	var lines, programs []string
	worktrees := map[string]bool{}
	for _, c := range byWeight(changes) {
		if c.IsProgram() {
			programs = append(programs, c.Path)
			continue
		}
		worktree := ""
		if c.IsWorktree() {
			worktree = filepath.Dir(c.Path)
		}
		if worktrees[worktree] {
			continue
		}
		what, keys := "changed", ""
		switch {
		case c.Before == "" && len(c.Keys) == 0: // a configuration may have had harmless settings before
			what = "new"
		case c.After == "":
			what = "removed"
		}
		if len(c.Keys) > 0 {
			keys = " (" + strings.Join(c.Keys[:min(len(c.Keys), 4)], ", ") + ")"
		}
		if worktree != "" {
			worktrees[worktree] = true
			lines = append(lines, fmt.Sprintf("%s is %s: git has it for a worktree of the repository", worktree, what))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s is %s: your host runs it when you %s%s", c.Path, what, c.When, keys))
	}
	if len(lines) > maxEndedLines {
		lines = append(lines[:maxEndedLines], fmt.Sprintf("and %d more", len(lines)-maxEndedLines))
	}
	if len(programs) > 0 {
		some := programs[:min(len(programs), 3)]
		lines = append(lines, hint.Plural(len(programs), "program")+", new or changed: "+strings.Join(some, ", "))
	}
	return lines
}

// byWeight returns changes, those first that a person is most likely to run: git's, and those at the top of the
// project. An agent chooses names, and must not fill the lines of the report with others.
func byWeight(changes []hostfiles.Change) []hostfiles.Change {
	weight := func(c hostfiles.Change) int {
		if strings.HasPrefix(c.Path, ".git/") || filepath.IsAbs(c.Path) {
			return -1
		}
		return strings.Count(c.Path, "/")
	}
	return slices.SortedStableFunc(slices.Values(changes),
		func(a, b hostfiles.Change) int { return weight(a) - weight(b) })
}

// callRemedy returns what corrects a wrong call of a command, or "" if f is about something else.
func callRemedy(f session.Refusal) string {
	if f.Reason != "arguments_invalid" || f.Call == "" || f.Call == session.UnnamedCall {
		return ""
	}
	return "correct its arguments: " + f.Call + " --help lists them in a sandbox"
}

// Remedy returns the command that a person runs to change the verdict, or that shows more of it.
func Remedy(f session.Refusal) string {
	switch f.Reason {
	case "host_not_allowed":
		if what := hostRemedy(f); what != "" {
			return what
		}
	case "credential_not_bound":
		return "aileron binding setup " + string(f.Connector)
	case "vault_locked":
		return "aileron vault unlock"
	}
	switch {
	case f.Reason == "operation_not_matched" && companion(f) != "":
		return "aileron connector install " + companion(f)
	case f.AuditID == "":
		return ""
	case f.Call != "": // what a command may call is decided by its connector
	case f.Reason == "operation_not_matched",
		// A second operation for the path of another connector's would be refused as a conflict.
		f.Reason == "query_not_declared" && strings.HasPrefix(string(f.Connector), "local://"):
		return "aileron allow " + f.AuditID
	}
	return "aileron audit show " + f.AuditID
}

// companion returns the connector of the catalogue that allows a request which the one that names its host does not,
// and that can be installed beside it. It is "" if there is none.
func companion(f session.Refusal) string {
	name, ok := catalog.Name(f.Connector)
	if !ok {
		return ""
	}
	port := uint16(f.Port) //nolint:gosec // a port
	target := spec.Target{Scheme: "https", Host: f.Host, Port: port, Method: f.Method, Path: f.Path}
	own, _ := catalog.Find(name)
	for _, e := range catalog.List() {
		if e.Name == name {
			continue
		}
		both, err := spec.NewIndex([]*spec.Connector{own.Connector, e.Connector})
		if err != nil {
			continue // they cannot be installed side by side
		}
		if m, no := both.Match(target); no == nil && m.Operation.Connector.FQN == e.Connector.FQN {
			return e.Name
		}
	}
	return ""
}

// hostRemedy returns the command that allows a host: to install the connector of the catalogue that names it, if there
// is one. It is "" for what no connector may name, such as an address.
func hostRemedy(f session.Refusal) string {
	h := spec.HostPattern{Name: f.Host, Port: uint16(f.Port)} //nolint:gosec // a port
	for _, e := range catalog.List() {
		if e.Names(h) {
			return "aileron connector install " + e.Name
		}
	}
	if _, err := spec.ParseHost(h.String()); err != nil {
		return ""
	}
	return "aileron allow " + strings.TrimSuffix(h.String(), ":443")
}
