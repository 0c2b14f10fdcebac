package auditpage

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// maxDecision bounds the body of a decision, in bytes.
const maxDecision = 1 << 10

// decision is what a person decides on the page.
type decision struct {
	ID      string         `json:"id"`
	Shown   string         `json:"shown"` // the digest of the question that the page showed
	Approve bool           `json:"approve"`
	For     approval.Scope `json:"for"`
	Unseen  bool           `json:"unseen"` // approve also what cannot be shown
	Revoke  bool           `json:"revoke"` // take the decision back that is in force
}

// refusal is the error of a decision that was not taken. Its status is 409.
type refusal struct{ err error }

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

// mayDecide reports whether a request can be one of this page to decide: browsers send each of these fields so, and a
// page of another origin can send none of them without this server's consent.
func mayDecide(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json" && r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// decide takes a decision. It is about what the page has shown, and nothing else.
func (p *Page) decide(w http.ResponseWriter, r *http.Request) error {
	if !mayDecide(r) {
		return badQuery{"this is no decision of the page"}
	}
	var in decision
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDecision))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || dec.More() ||
		!in.Revoke && (in.Shown == "" || !slices.Contains(approval.Scopes(), in.For)) {
		return badQuery{"the body is no decision"}
	}
	q, err := p.findQuestion(r.Context(), in.ID)
	if err != nil {
		return err
	}
	if in.Revoke {
		if err := p.opts.Desk.TakeBack(r.Context(), q); err != nil {
			return refusal{err}
		}
		return writeJSON(w, map[string]string{"text": "revoked " + approvals.What(q)})
	}
	if unseen := approvals.Unseen(q); unseen != "" && in.Approve && !in.Unseen && q.State == approval.Pending {
		return badQuery{"not approved: " + unseen}
	}
	q, err = p.opts.Desk.Decide(r.Context(), q, approval.Decision{Approve: in.Approve, For: in.For, Shown: in.Shown})
	if err != nil {
		return refusal{err}
	}
	return writeJSON(w, map[string]string{"text": approvals.Decided(q)})
}
