package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// judgeBody decides by the request's body which of the operations of a match it is, where they judge bodies. The body
// is read once, up to [judge.MaxBody], and the bytes that were judged are those that are sent. The bodies of other
// exchanges stream.
func (x *Exchange) judgeBody() *Denial {
	op := x.match.Operation
	if op != nil && x.sent != nil && op.Method == http.MethodPost && !op.JudgesBody() {
		x.sent = upstream.NewBody(judge.GuardForm(op, x.request.Header, x.sent))
	}
	if op == nil || !op.JudgesBody() {
		return nil
	}
	body, d := x.readWhole(judge.MaxBody)
	if d != nil {
		return d
	}
	var turn fair.Stream
	turn.Reset(x.p.fair, x.request.Context())
	if turn.Begin(len(body)) != nil {
		return ReasonClientGone.Deny("the client went away")
	}
	m, d := x.matchBody(body)
	turn.End()
	if d != nil {
		return d
	}
	if x.sent != nil { // a GET has none, and is judged by its query
		x.sent = upstream.NewBody(&wholeBody{bytes.NewReader(body), x.judged})
		x.request.ContentLength = int64(len(body))
	}
	return x.become(m)
}

// matchBody returns the operation of the match that allows the body. One that judges none allows every body.
func (x *Exchange) matchBody(body []byte) (spec.Match, *Denial) {
	op := x.match.Operation
	content, err := judge.Read(op, x.request.Header, x.target.Query, body)
	if err != nil {
		return x.matchUndecidable(err)
	}
	x.content = content
	for name, value := range content.Fields() {
		x.SetField(name, value)
	}
	var granted []string
	ops, matches := x.alternatives()
	for _, other := range ops {
		granted = append(granted, other.BodyGrants()...)
	}
	chosen, err := judge.Choose(content, append(slices.Clone(x.match.Prior), ops...))
	if err != nil {
		return spec.Match{}, denyContent(op, err, granted)
	}
	if m, ok := matches[chosen]; ok {
		return m, nil
	}
	return spec.Match{}, ReasonContent.Deny("%s is one of %s %s, which takes precedence over %s: call that",
		content.Parts()[0], chosen.Tool, chosen.Name, op.Name)
}

// alternatives returns the operations of the match that take the request, in their order, with the match of each. None
// stands behind one that judges content and refuses the query: what that asks about must not become another's.
func (x *Exchange) alternatives() (ops []*spec.Operation, matches map[*spec.Operation]spec.Match) {
	op := x.match.Operation
	ops, matches = []*spec.Operation{op}, map[*spec.Operation]spec.Match{op: x.match}
	for _, other := range x.match.Others {
		m, no := x.grants.Index.MatchOperation(other, x.target)
		if no == nil {
			ops, matches[other] = append(ops, other), m
			continue
		}
		if other.Judges(x.target) {
			break
		}
	}
	return ops, matches
}

// matchUndecidable returns the match for a body that cannot be judged, for the reason given: that of an operation that
// judges none.
func (x *Exchange) matchUndecidable(err error) (spec.Match, *Denial) {
	ops, matches := x.alternatives()
	for _, other := range ops {
		if !other.JudgesBody() {
			return matches[other], nil
		}
	}
	op := x.match.Operation
	return spec.Match{}, ReasonUndecidable.Deny("the body cannot be judged, as %s %s needs: %v", op.Tool, op.Name, err)
}

// Bounds of the denial of a body: the entries of granted, and of those in the message.
const (
	maxBodyGrants = 32
	maxBodyListed = 5
)

// denyContent returns the denial of what a body asks for, for a [judge.NotAllowed].
func denyContent(op *spec.Operation, err error, granted []string) *Denial {
	var no *judge.NotAllowed
	if !errors.As(err, &no) {
		return ReasonContent.Deny("%v", err)
	}
	d := ReasonContent.Deny("%s is not allowed by %s %s", no.Part, op.Tool, op.Name)
	d.Requested, d.Granted = no.Part.Requested(), granted[:min(len(granted), maxBodyGrants)]
	if no.Why != "" {
		d.Message = no.Error()
		return d
	}
	if len(granted) > 0 {
		d.Message += "; allowed are " + strings.Join(granted[:min(len(granted), maxBodyListed)], ", ")
	}
	if len(granted) > maxBodyListed {
		d.Message += ", …"
	}
	return d
}

// become makes m the operation of the exchange, and denies what it does not allow whatever the body is.
func (x *Exchange) become(m spec.Match) *Denial {
	x.match, x.decision.Match = m, m
	x.names(m.Operation)
	x.pathFields()
	if d := x.denyUnreadable(); d != nil {
		return d
	}
	return x.Question().denyUnapproved(m.Operation)
}

// judgeWait is how long a body that is judged may take to come, in whatever framing.
const judgeWait = 30 * time.Second

// shortBody is the length of a body that holds no more than the upload of another exchange.
const shortBody = 8 << 10

// errLate is the cause with which the reading of a body ends that took longer than [judgeWait].
var errLate = errors.New("the body came too slowly")

// readWhole reads the request's body, of at most so many bytes. They are held until they were sent, or the exchange has
// ended, as bytes of the client's own connection: while it does not send them, it makes room for others.
func (x *Exchange) readWhole(most int) ([]byte, *Denial) {
	if x.request.ContentLength > int64(most) {
		return nil, denyLong(most)
	}
	if x.sent == nil {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(x.request.Context())
	defer cancel(nil)
	defer time.AfterFunc(x.p.judgeWait, func() { cancel(errLate) }).Stop()
	shed := func() { cancel(budget.ErrShed) }
	if x.judged = wire.HoldFor(x.request, shed); x.judged == nil { // it came by no connection
		x.judged = x.p.budget.Conn().Hold(shed)
	}
	type result struct {
		body []byte
		err  error
	}
	read := make(chan result, 1)
	from, hold, asked := x.sent, x.judged, 2*most // x may be another's when the read ends
	if length := x.request.ContentLength; length >= 0 && length <= shortBody {
		asked = 2 * shortBody
	}
	x.p.reads.Go(func() {
		body, err := readUpTo(ctx, from, hold, asked, most)
		if ctx.Err() != nil {
			hold.Release()
		}
		read <- result{body, err}
	})
	var got result
	select {
	case got = <-read:
		x.judged.Move(0) // it stands still no more
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, budget.ErrShed):
		return nil, DenyMemory()
	case errors.Is(cause, errLate):
		return nil, ReasonSlow.Deny("the body is judged before it is sent, and did not come within %v", x.p.judgeWait)
	case cause != nil:
		return nil, ReasonClientGone.Deny("the client went away")
	case errors.Is(got.err, wire.ErrBodyTooLarge):
		return nil, denyLong(most)
	case got.err != nil:
		return nil, DenyBody(got.err)
	}
	return got.body, nil
}

// readUpTo returns all of a body of at most so many bytes, which hold has. The error for a longer one is
// [wire.ErrBodyTooLarge]. asked is taken at once: connections with bodies that do not come then hold more than others,
// and make room first.
func readUpTo(ctx context.Context, from io.Reader, hold *budget.Hold, asked, most int) (body []byte, err error) {
	room, taken := 4<<10, 0 // doubled: no more is used than twice what has come
	for {
		if more := max(asked, cap(body)+room) - taken; more > 0 {
			if ctx.Err() != nil || !hold.Stall(int64(more)) {
				return nil, budget.ErrShed
			}
			taken += more
		}
		body = append(make([]byte, 0, len(body)+room), body...)
		for len(body) < cap(body) {
			n, err := from.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
			switch {
			case len(body) > most:
				return nil, wire.ErrBodyTooLarge
			case errors.Is(err, io.EOF):
				hold.Give(int64(taken - cap(body)))
				return body, nil
			case err != nil:
				return nil, err
			}
		}
		room = cap(body)
	}
}

func denyLong(most int) *Denial {
	return ReasonTooLarge.Deny("the body has more than %d bytes, and is to be judged before it is sent", most)
}

// wholeBody is a body that has come. It is held until it was read.
type wholeBody struct {
	unread *bytes.Reader
	hold   *budget.Hold
}

func (b *wholeBody) Read(p []byte) (int, error) {
	n, err := b.unread.Read(p)
	if err != nil {
		b.unread.Reset(nil)
		b.hold.Release()
	}
	return n, err
}

// Ready reports that a read returns at once.
func (b *wholeBody) Ready() bool { return true }

// Close does nothing.
func (b *wholeBody) Close() error { return nil }
