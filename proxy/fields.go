package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/spec"
)

// maxFieldBody is how much of a JSON response is kept to read declared audit
// fields from. A longer one has none, and fields.body_fields in its row.
const maxFieldBody = 1 << 20

// maxField is the longest value of one declared field in an audit row.
const maxField = 1 << 10

// pathFields puts the declared path parameters into the row.
func (x *Exchange) pathFields() {
	for _, f := range x.match.Operation.Audit {
		name, ok := strings.CutPrefix(f.Source, "path.")
		if !ok {
			continue
		}
		if in := x.match.Operation.Injection; in != nil && in.In == "path" && in.Name == name {
			continue // the credential's own slot
		}
		if v, ok := x.match.Param(name); ok {
			x.SetField(f.Name, x.fieldValue(f, v))
		}
	}
}

func (x *Exchange) fieldValue(f spec.AuditField, v string) string {
	if f.Redact {
		// Salted by the session, so that equal values are seen to be equal within it
		// and cannot be looked up in a table.
		sum := sha256.Sum256([]byte(x.p.cfg.Token + "\x00" + f.Name + "\x00" + v))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return strings.ToValidUTF8(v[:min(len(v), maxField)], "\ufffd")
}

// watchFields keeps a copy of the scrubbed JSON response when the operation
// declares fields of it.
func (x *Exchange) watchFields(res *http.Response) error {
	declared := false
	for _, f := range x.match.Operation.Audit {
		declared = declared || strings.HasPrefix(f.Source, "response.body.")
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	media = strings.TrimSpace(strings.ToLower(media))
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	x.answered = res.StatusCode
	if events := media == "text/event-stream"; x.isMetered() && (isJSON || events) &&
		res.Header.Get("Content-Encoding") == "" {
		x.meter = meter.NewReader(x.match.Operation.Meters, x.match.Operation.MeterModel, events)
		res.Body = &meteredBody{res.Body, x.meter}
	}
	if declared && isJSON {
		x.fields = &fieldReader{ReadCloser: res.Body, hold: x.p.budget.Conn().Hold(nil)}
		res.Body = x.fields
	}
	return nil
}

// fieldReader keeps a copy of a body as it is read. Where the budget is short it
// keeps none: waiting for room would hold up the exchange, which may be the one
// that has to make room.
type fieldReader struct {
	io.ReadCloser
	hold *budget.Hold // of seen
	seen []byte
	over bool
}

func (r *fieldReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if !r.over {
		if r.over = len(r.seen)+n > maxFieldBody || !r.hold.TryTake(int64(n)); r.over {
			r.drop()
		} else {
			r.seen = append(r.seen, p[:n]...)
		}
	}
	return n, err
}

// drop forgets what was kept.
func (r *fieldReader) drop() {
	r.seen = nil
	r.hold.Release()
}

// bodyFields puts the declared fields of the response into the row. gjson requires
// valid input, and takes part in no decision.
func (x *Exchange) bodyFields() {
	if x.fields == nil {
		return
	}
	defer x.fields.drop()
	if x.fields.over || !gjson.ValidBytes(x.fields.seen) {
		x.SetField("body_fields", "unread")
		return
	}
	for _, f := range x.match.Operation.Audit {
		path, ok := strings.CutPrefix(f.Source, "response.body.")
		if !ok {
			continue
		}
		if v := gjson.GetBytes(x.fields.seen, path); v.Exists() {
			x.SetField(f.Name, x.fieldValue(f, v.String()))
		}
	}
}

// isMetered reports whether responses of the exchange's operation say what it uses up.
func (x *Exchange) isMetered() bool {
	return x.match.Operation != nil && len(x.match.Operation.Meters) > 0
}

// chargedFor returns the meters that the exchange's request may use, and the credential that it carries.
func (x *Exchange) chargedFor() (names []string, binding string) {
	op := x.match.Operation
	if op == nil {
		return nil, ""
	}
	if x.credentialed() {
		binding = x.grants.Bound[op.Connector.FQN].Binding
	}
	return op.MeterNames, binding
}

// checkBudget denies a request for which a budget is used up, unless a person is asked about it. What waits for a
// person is not counted as under way, so it takes nothing from others.
func (x *Exchange) checkBudget() *Denial {
	names, binding := x.chargedFor()
	err := x.p.cfg.Ledger.Check(names, binding, x.beyond...)
	if over := (*meter.Over)(nil); x.p.cfg.AskAtLimit && x.p.cfg.Approvals != nil && errors.As(err, &over) {
		x.over = over
		return nil
	}
	return x.denyByBudget(err)
}

// admitToBudget counts a request as under way, and denies it if a budget forbids it: also one that was used up while
// the request waited for a person, who is asked about the next one.
func (x *Exchange) admitToBudget() (d *Denial) {
	names, binding := x.chargedFor()
	var err error
	x.charge, err = x.p.cfg.Ledger.Admit(names, binding, x.beyond...)
	return x.denyByBudget(err)
}

// denyByBudget returns the denial for an error of the ledger, or nil for none.
func (x *Exchange) denyByBudget(err error) *Denial {
	if err == nil {
		return nil
	}
	var over *meter.Over
	if !errors.As(err, &over) {
		x.p.cfg.Log.Warn("a request was denied without a look at its budget", "error", err)
		d := ReasonBudget.Deny("the budget of the day cannot be read or written")
		d.advice = &advice{true, "Nothing was sent. Try again; if that does not help, tell the user, who sees the cause in " +
			"the messages of the session."}
		return d
	}
	d := ReasonBudget.Deny("%v", over)
	d.Budget = over
	switch {
	case over.UnderWay:
		d.advice = &advice{true, "Nothing was sent. Wait for requests that are under way, then try again."}
	case x.p.cfg.AskAtLimit && x.p.cfg.Approvals != nil:
		d.advice = &advice{true, "Nothing was sent: the budget was used up while the request waited. Try again; the user " +
			"is asked about the budget then."}
	case over.Budget != meter.OfSession:
		d.advice = &advice{false, "Nothing was sent. Do not retry: tell the user that the budget is used up until " +
			"midnight. They see what was used with: aileron audit list --event budget.reached, and set the limits of a day in " +
			"config.toml, for sessions that start then."}
	}
	return d
}

// budgetTool is the tool of a question about a limit. No operation of a connector has its name, which has spaces.
const budgetTool = "budget"

// awaitBudget holds a request until a person lets it exceed the limits that forbid it. A decision for the session
// raises a limit by its own size, and the next question comes there.
func (x *Exchange) awaitBudget(ctx context.Context, hold *budget.Hold, until time.Time) *Denial {
	for x.over != nil {
		if d := x.denyUnbound(); d != nil {
			return d
		}
		r, d := x.approvalRequest()
		if d != nil {
			return d
		}
		r.Tool, r.Operation = budgetTool, fmt.Sprintf("%s: %s beyond %d", x.over.Budget, x.over.Name, x.over.Limit)
		r.Covers, r.AnyPath, r.Budget = "more of it for this session", false, x.over.Error()
		if x.hold == nil {
			if x.hold = hold; !x.hold.Take(heldCost) {
				return DenyMemory()
			}
		}
		if d := x.readBody(ctx, &r, until); d != nil {
			return d
		}
		x.hold.Stall(0)
		for passes := false; !passes; {
			if passes, d = x.ask(ctx, r, until); d != nil {
				return d
			}
		}
		x.hold.Move(0)
		_, binding := x.chargedFor()
		if rule := x.p.cfg.Approvals.Ruled(r.Subject); rule != nil && rule.Wait(ctx, until) == approval.Approved {
			x.p.cfg.Ledger.Lift(x.over, binding, rule.ID())
			if x.p.cfg.Approvals.Ruled(r.Subject) == nil { // it was revoked meanwhile
				x.p.cfg.Ledger.Lower(rule.ID())
			}
		} else {
			x.beyond = append(x.beyond, x.over)
		}
		x.over = nil
		if d := x.checkBudget(); d != nil {
			return d
		}
	}
	return nil
}

// meteredBody is a body whose meters are read as it is.
type meteredBody struct {
	io.ReadCloser
	meter *meter.Reader
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.Write(p[:n])
	return n, err
}

// settle puts what the exchange has used up into its row and the ledger. A request that was not sent has used nothing.
func (x *Exchange) settle() {
	if !x.intended || x.charge == nil && !x.isMetered() {
		return
	}
	used := map[string]int64{}
	if x.isMetered() && x.answered < http.StatusBadRequest {
		estimated := x.readMeters(used)
		x.SetField("meters", used)
		if x.meter != nil && x.meter.Model() != "" {
			x.SetField("meters_model", x.meter.Model())
		}
		if len(estimated) > 0 {
			x.SetField("meters_estimated", estimated)
		}
	}
	if x.charge == nil {
		return
	}
	all := map[string]int64{meter.Requests: 1, meter.Bytes: x.row.RequestBytes + x.row.ResponseBytes}
	for name, n := range used {
		all[name] = n
	}
	x.charge.Settle(all)
}

// bytesPerToken is of how many bytes one unit of a meter that is not known is taken to be. Text has about four for a
// token, and an event of a stream has more bytes around it: an estimate is rather too high.
const bytesPerToken = 4

// readMeters puts what the response said into used, and returns the names of those that it did not, in full: a sandbox
// that ends a response before its last event must not have used less by that. They are estimated by bytes. Where not
// even a head came, there are none to go by: then a request is taken to use what the ledger expects of one.
func (x *Exchange) readMeters(used map[string]int64) (estimated []string) {
	found, good := map[string]int64{}, false
	if x.meter != nil {
		found, good = x.meter.Read()
	}
	whole := good && len(found) > 0 && x.row.Reason == ""
	for _, name := range x.match.Operation.MeterNames {
		n, known := found[name]
		switch {
		case whole:
		case known:
			n = max(n, x.row.ResponseBytes/bytesPerToken)
			estimated = append(estimated, name)
		default:
			if n = (x.row.RequestBytes + x.row.ResponseBytes) / bytesPerToken; x.unheard {
				n = max(n, x.charge.Expected(name))
			}
			estimated = append(estimated, name)
		}
		used[name] = n
	}
	slices.Sort(estimated)
	return estimated
}
