package openapi

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// repair leaves out the inputs that package spec does not accept. It reports false if it does not accept the operation
// without them either. So what a connector may declare has one definition.
func (r *reader) repair(f found, op *scaffold.Operation) bool {
	checked := *op
	checked.Name = "x"
	for range 3 {
		faults := checked.Check()
		if len(faults) == 0 {
			op.Inputs = checked.Inputs
			return true
		}
		bad := map[int]bool{}
		for _, fault := range faults {
			i, ok := inputOf(fault)
			if !ok || i >= len(checked.Inputs) || checked.Inputs[i].In == "" {
				r.notes.add("operations that cannot be declared", f.where+": "+clean(fault.Message, 120))
				return false
			}
			bad[i] = true
		}
		var kept []scaffold.Input
		for i, input := range checked.Inputs {
			if !bad[i] {
				kept = append(kept, input)
				continue
			}
			what := "inputs whose name or description a connector cannot have"
			if input.Required {
				what = "required " + what + " (such a request is sent with an HTTP client)"
			}
			r.notes.add(what, f.where+" "+cmp.Or(clean(input.Name, 60), "(empty)"))
		}
		checked.Inputs = kept
	}
	r.notes.add("operations that cannot be declared", f.where)
	return false
}

// inputOf returns the index of the input that a fault is about.
func inputOf(fault *spec.Diagnostic) (int, bool) {
	_, rest, ok := strings.Cut(fault.Path, ".inputs[")
	digits, _, closed := strings.Cut(rest, "]")
	i, err := strconv.Atoi(digits)
	return i, ok && closed && err == nil
}
