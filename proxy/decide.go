package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// Verdict is what is done with a request. The zero value is Deny.
type Verdict int

const (
	Deny        Verdict = iota
	Allow               // it is an operation of a connector
	Passthrough         // it is forwarded unmodified and without a credential
	SessionAPI          // it is for the session's own endpoints
)

// APIHost is the name under which a sandbox reaches its own session's API. It is
// never resolved.
const APIHost = "aileron.internal"

// Question is one request as it came, and what it is judged by. It is all that
// a decision depends on: no clock, no name resolution, no credential.
type Question struct {
	Index       *spec.Index
	Passthrough bool // hosts that no connector names are forwarded

	Authority Authority // of the tunnel, or of the absolute request target
	Scheme    string    // "https" or "http"
	Method    string
	Target    string // the request target as on the wire, in origin or absolute form
	Host      string // the Host field or :authority; "": there is none
	Upgrade   bool   // the request asks to leave HTTP
	Body      bool   // the request has a body

	Approvals bool // a person can be asked for an approval, before the request is sent
}

// Decision is the policy's decision about one request.
type Decision struct {
	Verdict Verdict
	Reason  Reason     // why, for Deny; "" otherwise
	Match   spec.Match // the operation that the request is; zero when it is none
	Target  spec.Target
	// Verbatim is whether the target is not what its URL would be on the wire, and is sent as it is all the same:
	// [spec.Index.IsOpen] holds for its host.
	Verbatim bool
	Denial   *Denial // the response to the client, for Deny; nil otherwise
	Doubtful bool    // two servers may read the target differently
}

// Decide returns the decision about a request. Every path to it leads here: a
// request in a tunnel, one in absolute form, and `aileron spec match`, which
// therefore reports what the proxy does.
func Decide(q Question) Decision {
	switch {
	case !wire.IsMethod(q.Method):
		return Denied(ReasonMalformed.Deny("the method is not a token"))
	case !wire.IsTarget(q.Target):
		return Denied(ReasonMalformed.Deny("the request target is empty, or has a blank, a control character or a fragment"))
	case q.Method == http.MethodConnect:
		return Denied(ReasonMalformed.Deny("there is a CONNECT inside a tunnel"))
	}
	t, doubt, d := target(q.Authority, q.Scheme, q.Method, q.Target, q.Host)
	if d != nil {
		return Denied(d)
	}
	if !wire.IsPlain(q.Target) && !q.isOpen(t) {
		return Denied(ReasonMalformed.Deny("the request target has a byte that is not plain ASCII"))
	}
	if t.Host == APIHost {
		return Decision{Verdict: SessionAPI, Target: t}
	}
	m, no := q.Index.Match(t)
	named := no == nil || q.Index.Covers(t.Host, t.Port)
	switch {
	case !named && q.Passthrough:
		return q.judge(Decision{Verdict: Passthrough, Target: t, Doubtful: doubt != ""})
	case named && doubt != "" && !(no == nil && (m.Operation.AnyPath() && !q.Index.JudgesBodies(t.Host, t.Port) ||
		m.HasEscapedSlash() && isPlainButSlashes(t))):
		return Denied(ReasonMalformed.Deny("%s", doubt))
	case no != nil:
		return Denied(DenyNoMatch(no, q.Upgrade))
	}
	return q.judge(Decision{Verdict: Allow, Target: t, Match: m, Doubtful: doubt != ""})
}

// Denied returns the decision that a request is denied with d.
func Denied(d *Denial) Decision { return Decision{Reason: d.Reason, Denial: d} }

// DenyNoMatch returns the denial of a request that is no operation, and may ask for an upgrade.
func DenyNoMatch(no *spec.NoMatch, upgrade bool) *Denial {
	d := &Denial{Reason: Reason(no.Reason), Message: strings.TrimSuffix(no.Error(), "."),
		Requested: no.Requested, Granted: no.Granted}
	if upgrade {
		// Agents retry a 403 of a WebSocket for seconds; 426 sends them to HTTPS.
		d.Reason = ReasonUpgrade
	}
	return d
}

// judge denies what a match does not: a request that does not meet what the
// operation demands beside its method, path and query, and a target that cannot
// be sent as it was judged.
func (q Question) judge(out Decision) Decision {
	d := q.denyUndeclared(out.Match.Operation)
	if d == nil {
		d = q.denyUnsendable(&out)
	}
	if d != nil {
		out.Verdict, out.Reason, out.Denial = Deny, d.Reason, d
	}
	return out
}

// denyUndeclared denies a request that its operation, nil for passthrough, does
// not allow.
func (q Question) denyUndeclared(op *spec.Operation) *Denial {
	if op != nil && !op.JudgesBody() { // then the body decides which operation it is
		if d := q.denyUnapproved(op); d != nil {
			return d
		}
	}
	switch {
	case q.Upgrade && op != nil && op.Injection != nil && op.Upgrade != "websocket":
		return ReasonUpgrade.Deny("%s %s does not declare an upgrade", op.Tool, op.Name)
	case q.Upgrade && q.Body:
		return ReasonBody.Deny("a request for an upgrade carries a body")
	case op != nil && q.Body && !op.TakesBody(q.Method):
		why := ""
		if q.Method == http.MethodDelete {
			why = ", and " + op.Tool + " " + op.Name + " declares none"
		}
		return ReasonBody.Deny("a %s request carries a body%s", q.Method, why)
	}
	return nil
}

// denyUnapproved denies a request whose operation requires an approval, where no person can be asked for one.
func (q Question) denyUnapproved(op *spec.Operation) *Denial {
	if op.Approval != "required" || q.Approvals {
		return nil
	}
	d := ReasonApproval.Deny("%s %s asks for an approval", op.Tool, op.Name)
	d.advice = noSurface
	return d
}

// Named makes d the decision about a call that names op: where the body decides which of several operations a request
// is, it must be that one.
func (d *Decision) Named(index *spec.Index, op *spec.Operation) {
	if i := slices.Index(d.Match.Others, op); d.Verdict == Allow && i >= 0 {
		if m, no := index.MatchOperation(op, d.Target); no == nil {
			m.Prior = append([]*spec.Operation{d.Match.Operation}, d.Match.Others[:i]...)
			d.Match = m
		}
	}
	if d.Match.Operation == op {
		d.Match.Others = nil
	}
}

// isOpen reports whether the host of t may get a target that two servers might read differently.
func (q Question) isOpen(t spec.Target) bool {
	return t.Host != APIHost && q.Index.IsOpen(t.Host, t.Port)
}

// denyUnsendable denies a target that would not be sent byte by byte as it was
// judged, and a query out of which the sandbox's own credentials cannot be taken.
func (q Question) denyUnsendable(out *Decision) *Denial {
	path, err := url.PathUnescape(out.Target.Path)
	if err != nil {
		return ReasonMalformed.Deny("the path has a broken escape")
	}
	if isOdd(out.Target, (&url.URL{Path: path, RawPath: out.Target.Path}).EscapedPath()) {
		out.Verbatim = q.isOpen(out.Target) && !strings.HasPrefix(out.Target.Path, "//") // net/url's mark of an authority
		if !out.Verbatim {
			return ReasonMalformed.Deny("the path has more than one spelling")
		}
	}
	if op := out.Match.Operation; op == nil || op.Injection == nil {
		return nil
	}
	for pair := range strings.SplitSeq(out.Target.Query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if _, err := url.QueryUnescape(name); err != nil {
			return ReasonMalformed.Deny("the query has a broken escape")
		}
	}
	return nil
}

// isOdd reports whether t is not what its URL would be on the wire, with its path
// escaped.
func isOdd(t spec.Target, escaped string) bool { return escaped != t.Path || !wire.IsPlain(t.Query) }

// ParseURL reads the scheme and the authority of an absolute URL, as the proxy
// reads a request target in absolute form (RFC 9112 section 3.2.2).
func ParseURL(raw string) (a Authority, scheme string, _ *Denial) {
	scheme, rest, _ := strings.Cut(raw, "://")
	named := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		named = rest[:i]
	}
	port := map[string]uint16{"http": 80, "https": 443}[scheme]
	a, err := hostport.Parse(named, port)
	switch {
	case port == 0:
		return a, "", ReasonMalformed.Deny("the scheme of the request target is neither http nor https")
	case err != nil:
		return a, scheme, ReasonMalformed.Deny("the request target names no plain host")
	}
	return a, scheme, nil
}
