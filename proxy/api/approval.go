package api

import (
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// approvalState is what a sandbox learns of an approval that one of its requests waits for. Who decides, and where, is
// not among it.
type approvalState struct {
	ID        string         `json:"approval_id"`
	State     approval.State `json:"state"`
	Used      bool           `json:"used"` // it was approved once, and its request has passed
	Tool      string         `json:"tool"`
	Operation string         `json:"operation"`
	Method    string         `json:"method"`
	Host      string         `json:"host"`
	Requested time.Time      `json:"requested_at"`
}

// approval responds with the state of an approval. To decide is the owner's, on the control socket.
func (a *API) approval(r *http.Request, id string) (*http.Response, *proxy.Denial) {
	if r.Method != http.MethodGet {
		return nil, proxy.ReasonOwnerOnly.Deny("only the owner of the session decides about an approval")
	}
	queue := a.plane.Config().Approvals
	if queue == nil {
		return nil, proxy.ReasonNotFound.Deny("there is no such approval")
	}
	q, ok := queue.State(id)
	if !ok {
		return nil, proxy.ReasonNotFound.Deny("there is no such approval")
	}
	return jsonResponse(r, approvalState{ID: q.ID, State: q.State, Used: q.Used, Tool: q.Tool, Operation: q.Operation,
		Method: q.Method, Host: q.Host, Requested: q.Requested}), nil
}
