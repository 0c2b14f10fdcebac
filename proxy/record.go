package proxy

import (
	"io"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/spec"
)

// recordTimeout bounds one wait for the audit log.
const recordTimeout = 5 * time.Second

// recordIntent commits the intent event. If it cannot be committed, the request
// is not sent.
func (x *Exchange) recordIntent() *Denial {
	x.recordDropped()
	row := x.row
	row.Event = audit.EventProxyStarted
	defer x.wait.end()
	if _, err := x.p.cfg.Audit.Append(x.wait.begin(recordTimeout), row); err != nil {
		x.p.cfg.Log.Debug("the intent row could not be written", "error", err) // the log itself reports an outage, once
		return ReasonAudit.Deny("the audit log cannot be written")
	}
	x.intended = true
	x.note()
	return nil
}

// note hands what a request is made of to a session that learns.
func (x *Exchange) note() {
	if x.p.cfg.Note == nil {
		return
	}
	contentType := ""
	if x.sent != nil && x.request != nil {
		contentType = x.request.Header.Get("Content-Type")
	}
	x.p.cfg.Note(x.target, contentType)
}

// attribute puts the connector that names the host into a denial's row: a filter
// by connector must show its denials too.
func (x *Exchange) attribute() {
	if x.row.ConnectorFQN != "" || x.row.Host == "" {
		return
	}
	port := uint16(x.row.Port) //nolint:gosec // it is one
	t := spec.Target{Host: x.row.Host, Port: port, Method: x.row.Method, Path: x.row.Path}
	if c := x.grants.Index.Naming(t); c != nil {
		x.row.ConnectorFQN, x.row.ConnectorVersion = string(c.FQN), c.Version
	}
}

// connector returns the connector of the row as FQN@VERSION, "" if it has none.
func (x *Exchange) connector() string {
	if x.row.ConnectorFQN == "" {
		return ""
	}
	return x.row.ConnectorFQN + "@" + x.row.ConnectorVersion
}

// recordNow commits the outcome row of a denial, which is sent only then.
func (x *Exchange) recordNow() error {
	x.finalize(audit.NewID())
	// The client may be gone; its row is written all the same.
	defer x.wait.end()
	if _, err := x.p.cfg.Audit.Append(x.wait.begin(recordTimeout), x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err)
		return err
	}
	return nil
}

// recordAsync adds the outcome row of an exchange that took place. Since that
// cannot be undone, the row may share the next commit.
func (x *Exchange) recordAsync() {
	x.finalize(x.OutcomeID())
	defer x.wait.end()
	if err := x.p.cfg.Audit.AppendSoon(x.wait.begin(recordTimeout), x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err) // the log counts it as lost
	}
}

// OutcomeID returns the id of the outcome row, which is chosen now if it has none.
func (x *Exchange) OutcomeID() string {
	if x.row.ID == "" {
		x.row.ID = audit.NewID()
	}
	return x.row.ID
}

// finalize puts the id and the sums into the outcome row.
func (x *Exchange) finalize(id string) {
	x.row.ID = id
	x.row.DurationUS = time.Since(x.started).Microseconds()
	if x.sent != nil {
		x.row.RequestBytes = x.sent.Sent()
	}
	x.row.Redactions = x.redactions.Total()
	if found := x.packed.Found(); found != "" {
		x.SetField("packed", string(found))
	}
	x.settle()
}

// markSent puts into the row that the request was sent.
func (x *Exchange) markSent() {
	x.row.Event, x.row.Decision = audit.EventProxyProxied, audit.DecisionProxied
	if x.decision.Verdict == Passthrough {
		x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	}
}

// recordUndelivered records a request whose client left before the response came:
// it was sent, and so was proxied all the same.
func (x *Exchange) recordUndelivered(d *Denial) *Denial {
	defer x.leave()
	if x.shed() {
		d.Reason = ReasonMemory
	}
	x.markSent()
	x.row.Reason = string(d.Reason)
	x.recordAsync()
	x.endCapture()
	d.AuditID = x.row.ID
	return d
}

// recordOutcome returns the response, with a body that records the outcome when
// it ends.
func (x *Exchange) recordOutcome(res *http.Response) *http.Response {
	x.capture.Respond(res)
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.switched(res)
	}
	return x.recordAtEnd(res)
}

// endCapture hands an exchange over to the session's capture, once its row is complete.
func (x *Exchange) endCapture() {
	if x.capture == nil {
		return
	}
	x.capture.End(capture.Outcome{Row: x.row, Secrets: x.secrets(), Slot: x.slot()})
}

// captureDenial is endCapture for an exchange that gets a denial, which has its audit id by now.
func (x *Exchange) captureDenial(d *Denial) {
	if x.capture == nil {
		return
	}
	res := d.Response(x.request) // as the client gets it: gRPC has a form of its own
	x.capture.Respond(res)
	x.row.ResponseBytes = 0
	if body, err := io.ReadAll(res.Body); err == nil && x.request.Method != http.MethodHead {
		x.capture.Received(body)
		x.row.ResponseBytes = int64(len(body))
	}
	x.endCapture()
}

// slot returns the place of the exchange's credential.
func (x *Exchange) slot() capture.Slot {
	if !x.credentialed() {
		return capture.Slot{}
	}
	op := x.match.Operation
	return capture.Slot{In: op.Injection.In, Name: op.Injection.Name, Replace: op.Path.Replace}
}
