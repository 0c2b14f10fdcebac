package connectortest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Print prints what became of the operation.
func (r Result) Print(out io.Writer) {
	state := "ok  "
	if !r.OK {
		state = "FAIL"
	}
	fmt.Fprintf(out, "%s  %s %s  %s %s\n", state, r.Tool, r.Operation, r.Method, r.URL)
	if r.OK && r.Credential != "" {
		fmt.Fprintf(out, "      credential in the %s; echoed, and redacted %s\n", r.Credential,
			hint.Plural(r.Redactions, "time"))
	}
	var audited []string
	for _, name := range slices.Sorted(maps.Keys(r.Audit)) {
		audited = append(audited, name+"="+r.Audit[name])
	}
	if len(audited) > 0 {
		fmt.Fprintf(out, "      audit %s\n", strings.Join(audited, " "))
	}
	for _, text := range r.Problems {
		fmt.Fprintf(out, "      fault: %s\n", text)
	}
	for _, text := range r.Notes {
		fmt.Fprintf(out, "      note: %s\n", text)
	}
}
