package proxy

import (
	"context"
	"io"

	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/websocket"
)

// inTurns returns a body that takes a turn for each piece, although nothing is searched in it: it is decrypted and
// encrypted. Its reads fail when ctx has ended.
func (p *Plane) inTurns(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	b := &turnedBody{ReadCloser: body}
	b.turns.Reset(p.fair, ctx)
	return b
}

type turnedBody struct {
	io.ReadCloser
	turns fair.Stream
}

func (b *turnedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && err == nil {
		err = b.turns.Pass(n)
	}
	return n, err
}

// Ready reports whether a read returns at once, if the source can tell.
func (b *turnedBody) Ready() bool {
	src, ok := b.ReadCloser.(interface{ Ready() bool })
	return ok && src.Ready()
}

// Pause notes that the body is not read for a while, and not by its client's fault.
func (b *turnedBody) Pause() {
	if src, ok := b.ReadCloser.(interface{ Pause() }); ok {
		src.Pause()
	}
}

// relayInTurns makes relay redact and record its messages, and take a turn for each piece of one. It waits for a turn
// even if its exchange ends meanwhile: a message with a gap would be worse.
func (x *Exchange) relayInTurns(relay *websocket.Relay) {
	down, up := &fair.Stream{}, &fair.Stream{}
	down.Reset(x.p.fair, context.Background())
	up.Reset(x.p.fair, context.Background())
	relay.NewScanner = func() websocket.Scanner { return turnedScanner{x.secrets().NewScanner(), down} }
	record := x.capture.Messages()
	relay.Record = func(byClient bool, op byte, piece []byte, end bool) {
		if byClient {
			_ = up.Pass(len(piece))
		}
		if record != nil {
			record(byClient, op, piece, end)
		}
	}
}

type turnedScanner struct {
	*scrub.Scanner
	turns *fair.Stream
}

func (s turnedScanner) Write(piece []byte) []byte {
	_ = s.turns.Begin(len(piece))
	defer s.turns.End()
	return s.Scanner.Write(piece)
}
