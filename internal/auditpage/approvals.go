package auditpage

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// Desk is what waits for a person's decision in running sessions, and takes the decisions.
type Desk interface {
	// List returns what waits, and the decisions in force, the oldest first, without bodies. What it could read counts
	// beside an error.
	List(ctx context.Context) ([]approval.Question, error)
	// Find returns the question of an id, with its body.
	Find(ctx context.Context, id string) (approval.Question, error)
	// Decide decides about a question, and returns it.
	Decide(ctx context.Context, q approval.Question, d approval.Decision) (approval.Question, error)
	// TakeBack revokes the decision of a question.
	TakeBack(ctx context.Context, q approval.Question) error
}

// askLine is a question, or a decision in force, in the list.
type askLine struct {
	ID      string   `json:"id"`
	Pending bool     `json:"pending"`
	State   string   `json:"state"`
	Cells   []string `json:"cells"` // of [approvals.Heads]; the last one is the agent's
}

// asked responds with what waits, and the decisions in force.
func (p *Page) asked(w http.ResponseWriter, r *http.Request) error {
	all, err := p.opts.Desk.List(r.Context())
	lines := []askLine{}
	for _, q := range approvals.InForce(all) {
		lines = append(lines, askLine{ID: q.ID, Pending: q.State == approval.Pending, State: string(q.State),
			Cells: approvals.Cells(q, time.Now())})
	}
	return writeJSON(w, struct {
		Heads []string  `json:"heads"`
		Lines []askLine `json:"lines"`
		problem
	}{approvals.Heads, lines, problemOf(err)})
}

// askText is a piece of a question: words of aileron's, or what another wrote.
type askText struct {
	By   approvals.Author `json:"by"`
	Text string           `json:"text"`
}

// ask is a question as the page shows it.
type ask struct {
	ID        string    `json:"id"`
	Digest    string    `json:"digest"`
	Pending   bool      `json:"pending"`
	Revocable bool      `json:"revocable"`
	What      string    `json:"what"`               // in words of the connector alone
	Covers    string    `json:"covers,omitempty"`   // what a decision for more than once is about; "": there is none
	AnyPath   bool      `json:"any_path,omitempty"` // it cannot be approved always
	Unseen    string    `json:"unseen,omitempty"`   // what of it cannot be shown
	Parts     []askText `json:"parts"`
}

// question responds with all that aileron approval show prints of a question.
func (p *Page) question(w http.ResponseWriter, r *http.Request) error {
	q, err := p.findQuestion(r.Context(), r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := approvals.Show(&text, q, 0); err != nil {
		return err
	}
	shown := ask{ID: q.ID, Digest: q.Digest, Pending: q.State == approval.Pending, What: approvals.What(q),
		Revocable: q.State != approval.Pending && len(approvals.InForce([]approval.Question{q})) > 0,
		AnyPath:   q.AnyPath, Unseen: bounded(approvals.Unseen(q), maxMessage), Parts: partsOf(text.String())}
	if q.IsOperation() {
		shown.Covers = bounded(q.Covers, maxMessage) + ", with " + cmp.Or(bounded(q.Binding, maxText), "no credential")
	}
	return writeJSON(w, shown)
}

// partsOf splits what [approvals.Show] prints by whose words they are. Lines of others that were folded are whole.
func partsOf(text string) (parts []askText) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words, by, more := approvals.Unmark(line)
		n := len(parts)
		switch {
		case n == 0 || parts[n-1].By != by:
			parts = append(parts, askText{by, words})
		case more:
			parts[n-1].Text += words
		default:
			parts[n-1].Text += "\n" + words
		}
	}
	return parts
}

// findQuestion returns the question of a whole id.
func (p *Page) findQuestion(ctx context.Context, id string) (approval.Question, error) {
	if !audit.IsID(id) {
		return approval.Question{}, badQuery{"this is no id of an approval"}
	}
	q, err := p.opts.Desk.Find(ctx, id)
	if err != nil {
		return q, refusal{err}
	}
	return q, nil
}
