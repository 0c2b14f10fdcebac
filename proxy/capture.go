package proxy

import (
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/capture"
)

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
