package propose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
)

// Unused is what installed connectors grant, and nothing in the log has used since a time.
type Unused struct {
	Since       time.Time `json:"since"`
	Connectors  []string  `json:"connectors"`   // that nothing used at all
	Operations  []string  `json:"operations"`   // of the others
	ProjectFile string    `json:"project_file"` // an .aileron.toml that narrows a session to what was used
}

// UnusedDays is how many days of the log are looked at.
const UnusedDays = 30

// maxAsks is how many requests a project's file may ask about, and maxAsk the length of one in bytes: see package
// config.
const (
	maxAsks = 64
	maxAsk  = 256
)

// FindUnused returns what is unused since the time.
func FindUnused(ctx context.Context, d *home.Dir, since time.Time) (*Unused, error) {
	current, err := connectors.ToMatch(d, nil)
	if err != nil {
		return nil, err
	}
	u := &Unused{Since: since, Connectors: []string{}, Operations: []string{}}
	used := map[string]bool{}
	passed := false
	l, err := d.AuditReader()
	if err != nil {
		return nil, err
	}
	if l != nil {
		defer l.Close()
		groups, err := l.Groups(ctx, audit.Filter{Since: since}, audit.GroupBy{})
		if err != nil {
			return nil, auditlog.Hint(err)
		}
		for _, g := range groups {
			passed = passed || g.Decision == audit.DecisionPassthrough
			if g.Decision == audit.DecisionProxied || g.Decision == audit.DecisionUpgrade {
				used[g.Connector], used[g.Connector+" "+g.Tool+" "+g.Operation] = true, true
			}
		}
	}
	u.compare(current, used, passed)
	return u, nil
}

// compare fills in what of the connectors is not among what was used.
func (u *Unused) compare(current []*spec.Connector, used map[string]bool, passed bool) {
	var keep []string
	var idle, busy []*spec.Operation
	for _, c := range current {
		if !used[string(c.FQN)] {
			u.Connectors = append(u.Connectors, string(c.FQN))
			continue
		}
		keep = append(keep, string(c.FQN))
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if used[op.String()] {
					busy = append(busy, op)
				} else {
					idle = append(idle, op)
					u.Operations = append(u.Operations, op.String())
				}
			}
		}
	}
	slices.Sort(keep)
	slices.Sort(u.Connectors)
	slices.Sort(u.Operations)
	u.ProjectFile = projectFile(keep, asks(idle, busy), passed)
}

// asks returns the requests of idle operations as a project's file names them. A pattern that would also ask about an
// operation that is used is left out.
func asks(idle, busy []*spec.Operation) (all []string) {
	for _, op := range idle {
		method := op.Method
		if method == "" {
			method = "*"
		}
		for _, h := range op.Hosts {
			text := method + " " + strings.TrimSuffix(h.String(), ":443") + pathPattern(op, "*")
			p, err := approvals.ParsePattern(text)
			if err != nil || len(text) > maxAsk || slices.Contains(all, text) || slices.ContainsFunc(busy,
				func(b *spec.Operation) bool { return asksAbout(p, b) }) {
				continue
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// pathPattern returns the path of an operation with a text in the place of its variables.
func pathPattern(op *spec.Operation, value string) string {
	if op.Path.IsZero() {
		return "/" + value
	}
	parts := strings.Split(op.Path.String(), "/")
	for i, p := range parts {
		before, name, ok := strings.Cut(p, "{")
		if _, after, _ := strings.Cut(name, "}"); ok && p != "{$}" {
			parts[i] = before + value + after
		}
	}
	return strings.TrimSuffix(strings.Join(parts, "/"), "{$}")
}

// asksAbout reports whether a pattern may have a request of the operation.
func asksAbout(p approvals.Pattern, op *spec.Operation) bool {
	if op.Path.IsZero() || op.Method == "" || op.Method == "*" {
		return true
	}
	return slices.ContainsFunc(op.Hosts, func(h spec.HostPattern) bool {
		t := spec.Target{Scheme: "https", Host: h.Name, Port: h.Port, Method: op.Method, Path: pathPattern(op, "x")}
		return p.Covers(t, nil, false)
	})
}

// projectFile returns an .aileron.toml.
func projectFile(keep, asks []string, passed bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the log of %d days used. It narrows the sessions of the project that it lies in.\n",
		UnusedDays)
	fmt.Fprintf(&b, "connectors = [%s]\n", list(keep[:min(len(keep), maxAsks)]))
	if passed {
		b.WriteString("# Requests passed that no connector allows: see aileron learn, before you write egress = \"deny\".\n")
	} else {
		b.WriteString("egress = \"deny\"\n")
	}
	if len(asks) > 0 {
		b.WriteString("# A project cannot take single operations away. You are asked before what was not used.\n")
		fmt.Fprintf(&b, "approve = [%s]\n", list(asks[:min(len(asks), maxAsks)]))
	}
	if more := len(asks) - maxAsks; more > 0 {
		fmt.Fprintf(&b, "# %d more had no room.\n", more)
	}
	return b.String()
}

// list returns texts as the inside of a TOML array. All of them are plain ASCII.
func list(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	var all []string
	for _, t := range texts {
		quoted, _ := json.Marshal(t) // a string can be marshalled
		all = append(all, string(quoted))
	}
	return "\n  " + strings.Join(all, ",\n  ") + ",\n"
}

// Print prints what is unused as the comments of a project's file.
func (u *Unused) Print(out io.Writer) {
	for _, c := range u.Connectors[:min(len(u.Connectors), maxLines)] {
		fmt.Fprintf(out, "# unused: %s\n", c)
	}
	for _, op := range u.Operations[:min(len(u.Operations), maxLines)] {
		fmt.Fprintf(out, "# unused: %s\n", op)
	}
	if more := len(u.Operations) - maxLines; more > 0 {
		fmt.Fprintf(out, "# and %d more operations\n", more)
	}
	fmt.Fprint(out, u.ProjectFile)
}
