package review

import (
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Pruned is what audit prune prints.
type Pruned struct {
	audit.PrunePlan
	audit.Shrunk
	Pruned bool   `json:"pruned"`
	ID     string `json:"id,omitempty"`             // of the row that stands for what was removed
	Notes  int    `json:"learning_notes,omitempty"` // of so many learning sessions, which were removed with them
}

// PrunePlanText returns what is to be removed.
func PrunePlanText(p *audit.PrunePlan) string {
	return fmt.Sprintf("%d events (rows %d to %d, %s to %s, %d sessions)",
		p.Rows, p.First, p.Last, day(p.From), day(p.Until), p.Sessions)
}

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Text returns what was done, or why nothing was.
func (d Pruned) Text() string {
	text := "pruned  " + PrunePlanText(&d.PrunePlan)
	switch {
	case d.Rows == 0 && d.Session != "":
		return fmt.Sprintf("nothing to prune: the first events are of session %s, which had not ended then", d.Session)
	case d.Rows == 0:
		return fmt.Sprintf("nothing to prune: the first event, row %d of %s, is not older", d.Newer, day(d.NewerTS))
	case !d.Pruned:
		text = "would prune  " + PrunePlanText(&d.PrunePlan)
	case d.After > 0:
		text += fmt.Sprintf("  audit.db has %s, and had %s", ByteCount(d.After), ByteCount(d.Before))
	}
	if d.Notes > 0 {
		text += "  the notes of " + hint.Plural(d.Notes, "learning session") + " are removed"
	}
	if d.Session != "" {
		text += fmt.Sprintf("  the rest stays, because session %s had not ended then", d.Session)
	}
	return text
}
