package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/reach"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// Group is a group of operations of a document: a tag, or where there is none the beginning of their names or paths.
type Group struct {
	Name                   string
	Reads, Writes, Deletes int
}

// Operations returns how many there are.
func (g Group) Operations() int { return g.Reads + g.Writes + g.Deletes }

// Is reports whether a person's text names the group: its name, or the tag that it is of, in any case.
func (g Group) Is(text string) bool {
	return text != "" && (strings.EqualFold(g.Name, text) || strings.EqualFold(g.Name, foreign.SafeName(text)))
}

// Groups returns the groups of the operations of a document that opts.Only selects, sorted by name. It reads nothing
// else of them.
func Groups(data []byte, opts Options) ([]Group, error) {
	opts.Groups = nil
	r, err := newReader(data, opts)
	if err != nil {
		return nil, err
	}
	var groups []Group
	at := map[string]int{}
	for _, f := range r.operations() {
		name := groupOf(f)
		key := strings.ToLower(name)
		i, known := at[key]
		if !known {
			i, at[key] = len(groups), len(groups)
			groups = append(groups, Group{Name: name})
		}
		switch g := &groups[i]; f.method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			g.Reads++
		case http.MethodDelete:
			g.Deletes++
		default:
			g.Writes++
		}
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return groups, nil
}

// groupOf returns the group of an operation: its first tag, else what is before the first dot of its name, else the
// first part of its path that is neither a variable nor a version.
func groupOf(f found) string {
	for _, tag := range f.op.get("tags").first(1) {
		if name := foreign.SafeName(tag.scalar()); name != "" {
			return name
		}
	}
	name := operationName(f)
	if group := spec.GroupOf(name); group != name {
		return group
	}
	for part := range strings.SplitSeq(f.path, "/") {
		if word := foreign.SafeName(part); word != "" && !strings.Contains(part, "{") && !isVersion(word) {
			return word
		}
	}
	return name
}

// isVersion reports whether a part of a path is as v1, 2.0 or 2024-01 are, or one that most paths begin with.
func isVersion(part string) bool {
	digits := strings.TrimLeft(strings.ToLower(part), "v")
	return strings.Trim(digits, "0123456789.-") == "" || part == "api" || part == "rest"
}

// setGroup sets the group of an operation that has a name, unless it is the one that it has without.
func setGroup(f found, op *scaffold.Operation) {
	if group := groupOf(f); group != spec.GroupOf(op.Name) {
		op.Group = group
	}
}

// inGroups reports whether the operation is in one of the groups that are selected.
func (r *reader) inGroups(f found) bool {
	if len(r.opts.Groups) == 0 {
		return true
	}
	i := slices.IndexFunc(r.opts.Groups, Group{Name: groupOf(f)}.Is)
	if i >= 0 {
		r.use(r.opts.Groups[i])
	}
	return i >= 0
}

// use notes that a pattern of the options stands for an operation at least.
func (r *reader) use(pattern string) {
	if r.used == nil {
		r.used = map[string]bool{}
	}
	r.used[pattern] = true
}

// setApproval sets whether requests of the operation wait for a person: those that opts.Approve names, all that may
// write if it names none, and whatever it names, those that lead to what the service hosts.
func (r *reader) setApproval(op *scaffold.Operation) {
	isAsked := op.Approval != ""
	if len(r.opts.Approve) > 0 {
		isAsked = false
		for _, pattern := range r.opts.Approve {
			if foreign.Matches(pattern, op.Method+" "+op.Path) || foreign.Matches(pattern, op.Name) {
				isAsked = true
				r.use(pattern)
			}
		}
	}
	if r.opts.ApproveNone {
		isAsked = false
	}
	op.Approval = ""
	if isAsked || reach.Inside(op.Name, op.Path) || reach.Below(op.Path) {
		op.Approval = spec.ApprovalRequired
	}
}

// checkUsed returns an error for a group or a pattern that no operation has: a misspelled one would leave out, or let
// through, what was meant.
func (r *reader) checkUsed() error {
	for _, group := range r.opts.Groups {
		if !r.used[group] {
			all := reader{root: r.root}
			var names []string
			for _, f := range all.operations() {
				if name := groupOf(f); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			more := ""
			if near := hint.Nearest(group, names); near != "" {
				more = "did you mean " + near + "? "
			}
			return hint.New(fmt.Errorf("the document has no operation in the group %q", foreign.Clean(group, 60)),
				"%sits groups: %s", more, foreign.Clean(strings.Join(names, ", "), 1000))
		}
	}
	for _, pattern := range r.opts.Approve {
		if !r.used[pattern] {
			return hint.New(fmt.Errorf("no operation is what --approve names: %q", foreign.Clean(pattern, 80)),
				"name the method and the path, or the operation, in which * stands for any text: --approve 'DELETE *'")
		}
	}
	return nil
}
