package spec

import (
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// readGroup reads the group of an operation, or takes the first part of its name: "issues" of issues.get.
func (op *Operation) readGroup(n node) {
	if op.Group = n.text("group", false); op.Group == "" {
		op.Group = GroupOf(op.Name)
		return
	}
	if !plain.IsName(op.Group, "._:-") {
		n.diags.add(n.at("group"), "%q is not letters, digits, dots, dashes, underscores and colons", op.Group)
	}
}

// GroupOf returns the group of an operation of that name which declares none: what is before the first dot or colon.
func GroupOf(name string) string {
	if i := strings.IndexAny(name, ".:"); i > 0 {
		return name[:i]
	}
	return name
}
