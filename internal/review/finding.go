package review

import (
	"fmt"
	"github.com/ALRubinger/aileron/audit"
)

func FindingText(f audit.Finding) string {
	if f.Seq == 0 {
		return f.Why
	}
	if f.ID == "" {
		return fmt.Sprintf("row %d: %s", f.Seq, f.Why)
	}
	return fmt.Sprintf("row %d (%s) is broken: %s", f.Seq, f.ID, f.Why)
}
