package auditpage

import (
	"fmt"
	"net/http"

	"github.com/ALRubinger/aileron/audit"
)

// verdict is whether the log is complete and unchanged.
type verdict struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Hint string `json:"hint"`
}

// verify responds with what aileron audit verify finds. It reads all rows.
func (p *Page) verify(w http.ResponseWriter, r *http.Request) error {
	end, err := p.waitTurn(r.Context())
	if err != nil {
		return err
	}
	defer end()
	l, done, err := p.logs.open()
	if err != nil {
		return err
	}
	defer done()
	report, err := l.Verify(r.Context())
	if err != nil {
		return err
	}
	return newStream(w).send(verdictOf(report)) // a stream, because a long log takes longer than writeTimeout
}

func verdictOf(r audit.Report) verdict {
	if !r.OK {
		text := r.Why
		if n := len(r.Findings) + r.More - 1; n > 0 {
			text = fmt.Sprintf("%s, and %d more findings", text, n)
		}
		return verdict{Text: bounded(text, maxMessage), Hint: "aileron audit verify lists all that does not match"}
	}
	v := verdict{OK: true, Text: fmt.Sprintf("All %d rows are chained up to the head %.12s…", r.Rows, r.Head),
		Hint: "aileron audit head prints a signed line to keep elsewhere"}
	if r.Signed > 0 {
		v.Text += fmt.Sprintf("; signed up to row %d by %s", r.Signed, bounded(r.SignedBy, maxText))
	}
	return v
}
