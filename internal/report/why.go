package report

import (
	"cmp"
	"net"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
)

// Explainer returns a function that returns why the request of a row was refused, and what would be allowed in its
// place by the connectors that are installed now. It is "" for any other row.
func Explainer(d *home.Dir) func(audit.Row) string {
	var index *spec.Index
	if connectors, err := connectors.ToMatch(d, nil); err == nil {
		index, _ = spec.NewIndex(connectors) // an error: nothing is known of what is allowed
	}
	return func(r audit.Row) string {
		if r.Decision != audit.DecisionRejected || r.Reason == "" {
			return ""
		}
		why := "why: " + cmp.Or(allowedInstead(index, r), strings.TrimSuffix(proxy.Reason(r.Reason).Advice(), "."),
			r.Reason)
		refusal := session.Refusal{Reason: r.Reason, Method: r.Method, Host: r.Host, Port: r.Port, Path: r.Path,
			Call: session.CallOf(&r), Connector: spec.FQN(r.ConnectorFQN), AuditID: r.ID}
		if what := Remedy(refusal); what != "" && !strings.HasPrefix(what, "aileron audit show ") {
			why += "; allow it with: " + what
		}
		return why
	}
}

// maxInstead is how many allowed requests a refused one is explained with.
const maxInstead = 5

// allowedInstead returns what the policy allows now in place of a refused request, or "" if the policy is not why it
// was refused.
func allowedInstead(index *spec.Index, r audit.Row) string {
	switch r.Reason {
	case "host_not_allowed", "operation_not_matched":
	default:
		return ""
	}
	if index == nil || r.Host == "" {
		return ""
	}
	if r.Reason == "host_not_allowed" {
		r.Path = "/" // which may be none of a request: the host alone decided
	}
	raw := cmp.Or(r.Scheme, "https") + "://" + net.JoinHostPort(r.Host, strconv.Itoa(cmp.Or(r.Port, 443))) + r.Path
	authority, scheme, denial := proxy.ParseURL(raw)
	if denial != nil {
		return ""
	}
	d := proxy.Decide(proxy.Question{Index: index, Authority: authority, Scheme: scheme, Method: r.Method, Target: raw})
	switch {
	case d.Verdict == proxy.Allow && d.Match.Operation != nil:
		op := d.Match.Operation
		return "it is allowed now, as " + op.Tool + " " + op.Name + " of " + string(op.Connector.FQN)
	case d.Denial == nil || string(d.Reason) != r.Reason:
		return ""
	case len(d.Denial.Granted) == 0:
		return d.Denial.Message
	}
	granted := d.Denial.Granted
	text := "allowed are " + strings.Join(granted[:min(len(granted), maxInstead)], ", ")
	if len(granted) > maxInstead {
		text += ", …"
	}
	return text
}

// ExplainStory adds what the installed connectors have, and the log has not.
func ExplainStory(d *home.Dir, s *review.Story) {
	s.Slot, s.Why = slotOf(d, *s), strings.TrimPrefix(Explainer(d)(s.Row), "why: ")
}

// slotOf returns where the credential of a request was put, by the connector with the content hash that was in force.
func slotOf(d *home.Dir, s review.Story) string {
	if s.ConnectorHash == "" || s.Row.Binding == "" || s.Row.Operation == "" {
		return ""
	}
	store, err := d.OpenStore()
	if err != nil {
		return ""
	}
	c, err := store.Load(s.ConnectorHash)
	if err != nil {
		return ", in a slot that is not known: that version of the connector is not installed any more"
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if t.Name == s.Row.Tool && op.Name == s.Row.Operation && op.Injection != nil {
				return ", in " + op.Injection.In + " " + op.Injection.Name
			}
		}
	}
	return ""
}
