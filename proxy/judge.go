package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
)

// judgeBody decides by the request's body which of the operations of a match it is, where they judge bodies. The body
// is read once, up to [judge.MaxBody], and the bytes that were judged are those that are sent. The bodies of other
// exchanges stream.
func (x *Exchange) judgeBody() *Denial {
	if op := x.match.Operation; op == nil || !op.JudgesBody() {
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
	x.sent = upstream.NewBody(&wholeBody{bytes.NewReader(body), x.judged})
	x.request.ContentLength = int64(len(body))
	return x.become(m)
}

// matchBody returns the first operation of the match that allows the body. One that judges none allows every body.
func (x *Exchange) matchBody(body []byte) (spec.Match, *Denial) {
	op := x.match.Operation
	content, err := judge.Read(op, x.request.Header, body)
	if err == nil {
		for name, value := range content.Fields() {
			x.SetField(name, value)
		}
		if content.AllowedBy(op) {
			return x.match, nil
		}
	}
	granted := op.BodyGrants()
	for _, other := range x.match.Others {
		if m, no := x.grants.Index.MatchOperation(other, x.target); no == nil {
			if !other.JudgesBody() || err == nil && content.AllowedBy(other) {
				return m, nil
			}
			granted = append(granted, other.BodyGrants()...)
		}
	}
	if err != nil {
		return spec.Match{}, ReasonUndecidable.Deny("the body cannot be judged, as %s %s needs: %v", op.Tool, op.Name, err)
	}
	return spec.Match{}, denyContent(op, content, granted)
}

// Bounds of the denial of a body: the entries of granted, and of those in the message.
const (
	maxBodyGrants = 32
	maxBodyListed = 5
)

// denyContent returns the denial of what a body asks for.
func denyContent(op *spec.Operation, content judge.Content, granted []string) *Denial {
	d := ReasonContent.Deny("%s is not allowed by %s %s", content, op.Tool, op.Name)
	d.Requested, d.Granted = content.Requested(), granted[:min(len(granted), maxBodyGrants)]
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

// readWhole reads the request's body, of at most so many bytes. They are held until they were sent, or
// the exchange has ended.
func (x *Exchange) readWhole(most int) ([]byte, *Denial) {
	length := x.request.ContentLength
	if length > int64(most) {
		return nil, denyLong(most)
	}
	if x.sent == nil {
		return nil, nil
	}
	x.judged = x.p.budget.Conn().Hold(nil)
	room := 4 << 10 // doubled: no more is held than twice what has come
	var body []byte
	for {
		if !x.judged.Take(int64(room)) {
			return nil, DenyMemory()
		}
		body = append(make([]byte, 0, len(body)+room), body...)
		for len(body) < cap(body) {
			n, err := x.sent.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
			switch {
			case len(body) > most:
				return nil, denyLong(most)
			case errors.Is(err, io.EOF):
				return body, nil
			case err != nil && x.request.Context().Err() != nil:
				return nil, ReasonClientGone.Deny("the client went away")
			case err != nil:
				return nil, DenyBody(err)
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
