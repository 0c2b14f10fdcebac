package judge

import (
	"fmt"

	"github.com/ALRubinger/aileron/spec"
)

// NotAllowed is the error for a content that no operation allows.
type NotAllowed struct {
	Part Part   // the first that is not allowed
	Why  string // continues the part; "": no operation allows it
}

func (e *NotAllowed) Error() string {
	if e.Why != "" {
		return fmt.Sprint(e.Part, " ", e.Why)
	}
	return fmt.Sprint(e.Part, " is not allowed")
}

// Choose returns the operation of ops that a content is. Each of its parts belongs to the first operation that allows
// it. Where these are several, the content belongs to the one that needs an approval, else to the first. Two that need
// one are two questions, so the content is not allowed. Nor is a content of operations with different credentials. An
// operation that judges no bodies allows all. The error is a [NotAllowed].
func Choose(content Content, ops []*spec.Operation) (*spec.Operation, error) {
	var chosen *spec.Operation
	for _, part := range content.Parts() {
		op := allowing(part, ops)
		switch {
		case op == nil:
			return nil, &NotAllowed{Part: part}
		case chosen == nil:
			chosen = op
		case op == chosen:
		case !sameCredential(op, chosen):
			return nil, &NotAllowed{part, "has another credential than what else the body asks for: send it by itself"}
		case asks(op) && asks(chosen):
			return nil, &NotAllowed{part, "needs an approval of its own: send it by itself"}
		case asks(op):
			chosen = op
		}
	}
	return chosen, nil
}

// allowing returns the first operation that allows the part; nil: there is none.
func allowing(part Part, ops []*spec.Operation) *spec.Operation {
	for _, op := range ops {
		if !op.JudgesBody() || part.AllowedBy(op) {
			return op
		}
	}
	return nil
}

func asks(op *spec.Operation) bool { return op.Approval != "" && op.Approval != "none" }

func sameCredential(a, b *spec.Operation) bool {
	if a.Injection == nil || b.Injection == nil {
		return a.Injection == b.Injection
	}
	return *a.Injection == *b.Injection
}
