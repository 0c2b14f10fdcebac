package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/condition"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// The values of Operation.Approval.
const (
	ApprovalNone     = "none"
	ApprovalRequired = "required"
	ApprovalWhen     = "when" // if the conditions of Operation.When hold, or may
)

// Asks returns in a few words when the operation waits for an approval; "": it never does.
func (o *Operation) Asks() string {
	switch o.Approval {
	case ApprovalRequired:
		return "always"
	case ApprovalWhen:
		return "when " + condition.Text(o.When)
	}
	return ""
}

// maxConditions bounds the conditions of an operation.
const maxConditions = 8

// readApproval reads approval. The path, the query and the inputs must have been read.
func (op *Operation) readApproval(n node) {
	v, _ := n.o.Get("approval")
	if _, isObject := v.(strictjson.Object); !isObject {
		op.Approval = cmp.Or(n.choice("approval", ApprovalNone, ApprovalRequired), ApprovalNone)
		return
	}
	a, _ := n.diags.open(v, n.at("approval"), "when")
	v, _ = a.o.Get("when")
	all, _ := v.(strictjson.Object)
	if len(all) == 0 || len(all) > maxConditions {
		n.diags.add(a.at("when"), `it is not an object of 1 to %d inputs with their values, such as `+
			`{"path.branch": ["main"]}`, maxConditions)
	}
	when, inputs := node{n.diags, a.at("when"), all}, op.conditional()
	for _, f := range all {
		values := when.distinct(f.Key, func(string) bool { return true }, "is too long")
		kind, known := inputs[f.Key]
		c, err := condition.Read(f.Key, kind, values)
		switch {
		case !known:
			n.diags.add(when.at(f.Key), "it is no input of the operation, which has: %s",
				strings.Join(slices.Sorted(maps.Keys(inputs)), ", "))
		case err != nil:
			n.diags.add(when.at(f.Key), "%v", err)
		case len(values) == 0:
			n.diags.add(when.at(f.Key), "it has no entry")
		}
		op.When = append(op.When, c)
	}
	if query, _ := n.o.Get("query"); query == "any" {
		n.diags.add(n.at("query"), `it is "any", and a condition for approvals needs "declared"`)
	}
	op.QueryDeclaredOnly, op.Approval = true, ApprovalWhen
}

// conditional returns the inputs that a condition can be about, with their types.
func (op *Operation) conditional() map[string]string {
	all := map[string]string{}
	for _, s := range op.Path.Segments() {
		if s.Name != "" {
			all[InPath+"."+s.Name] = ""
		}
	}
	for _, in := range op.Inputs {
		if in.In == InBody && op.Body != "" && op.Body != body.JSON && op.Body != body.Form {
			continue // which no judge reads
		}
		if in.Style != body.Repeated {
			continue // a part of the value may be what a server reads
		}
		all[in.In+"."+in.Name] = in.Type
	}
	return all
}
