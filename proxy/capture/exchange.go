package capture

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/martian/v3/har"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// Exchange is one request and its response. A nil *Exchange records nothing.
type Exchange struct {
	file     *File
	began    time.Time
	target   string // as the client sent it
	request  []har.Header
	response []har.Header
	code     int    // the response's status; 0: there is none
	status   string // its reason phrase
	res      *http.Response
	trailers []har.Header
	up       *body // nil: the request has none
	down     body
	messages *messages // nil: it is no WebSocket
	over     bool
}

// Outcome is what is known of an exchange when it has ended.
type Outcome struct {
	Row     audit.Row
	Secrets *scrub.Set // of the session; nil: it has none
	// Slot is where the proxy put the credential of Row.Binding. Its zero value means nowhere.
	Slot Slot
}

// Slot is the place of a credential in a request.
type Slot struct {
	In, Name string // as of the operation's injection
	// Replace returns the path with a value in the place of the variable Name. It is needed for In "path".
	Replace func(path, name, value string) (string, bool)
}

// newExchange copies what is needed of a request: its header is changed later.
func newExchange(f *File, r *http.Request) *Exchange {
	e := &Exchange{file: f, began: time.Now(), target: strings.Clone(r.RequestURI)}
	e.down.file = f
	e.request = append(e.request, har.Header{Name: "Host", Value: strings.Clone(r.Host)})
	e.request = append(e.request, headers(r.Header)...)
	return e
}

// headers returns a copy of h, sorted by name.
func headers(h http.Header) []har.Header {
	all := make([]har.Header, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			all = append(all, har.Header{Name: strings.Clone(name), Value: strings.Clone(value)})
		}
	}
	return all
}

// Upload returns a reader of a request's body that records what is read of it.
func (e *Exchange) Upload(src io.ReadCloser) io.ReadCloser {
	if e == nil {
		return src
	}
	e.up = &body{file: e.file}
	return &upload{src, e.up}
}

// Respond records the head of the response, as the client gets it.
func (e *Exchange) Respond(res *http.Response) {
	if e == nil {
		return
	}
	e.response, e.res, e.code = headers(res.Header), res, res.StatusCode
	if _, phrase, ok := strings.Cut(res.Status, " "); ok {
		e.status = phrase
	}
}

// Received records a piece of the response's body.
func (e *Exchange) Received(piece []byte) {
	if e != nil {
		e.down.add(piece)
	}
}

// End hands the exchange over to be written. Only the first call does.
func (e *Exchange) End(o Outcome) {
	if e == nil || e.over {
		return
	}
	e.over = true
	if e.res != nil {
		e.trailers, e.res = headers(e.res.Trailer), nil
	}
	e.up.end()
	e.down.end()
	e.messages.end()
	e.file.add(&ended{e, o})
}

// release returns what the bodies and messages held.
func (e *Exchange) release() {
	e.up.release()
	e.down.release()
	e.messages.release()
}
