package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// inTurn waits for the turn of what reads all operations: one at a time does, and a sandbox may send any number of
// requests.
func (a *API) inTurn(r *http.Request) (leave func(), _ *proxy.Denial) {
	select {
	case a.listings <- struct{}{}:
		return func() { <-a.listings }, nil
	case <-r.Context().Done():
		return nil, proxy.ReasonClientGone.Deny("the client went away")
	}
}

// listing returns the response with the JSON of v, which may be megabytes.
func listing(r *http.Request, v any) (*http.Response, *proxy.Denial) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	body, ok := newListed(r, out.Bytes())
	if !ok {
		return nil, proxy.DenyMemory()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"},
			"Content-Length": {strconv.Itoa(out.Len())}},
		Body: body, ContentLength: int64(out.Len()),
	}, nil
}

// listed is a body that was made as a whole. It counts against the session's memory until its client has read it, and
// makes room for others as what their clients do not read does: then it breaks off.
type listed struct {
	hold *budget.Hold

	mu   sync.Mutex
	rest []byte
	shed bool
}

// newListed returns the body of a response to r. ok is false if there is no memory for it.
func newListed(r *http.Request, text []byte) (_ io.ReadCloser, ok bool) {
	l := &listed{rest: text}
	l.hold = wire.HoldFor(r, l.makeRoom)
	if !l.hold.Stall(int64(cap(text))) {
		l.hold.Release()
		return nil, false
	}
	return l, true
}

// makeRoom drops what was not read.
func (l *listed) makeRoom() {
	l.mu.Lock()
	l.rest, l.shed = nil, true
	l.mu.Unlock()
	go l.hold.Release() // it must not be used in here
}

func (l *listed) Read(p []byte) (int, error) {
	goesOn := l.hold.Stall(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.shed || !goesOn:
		return 0, budget.ErrShed
	case len(l.rest) == 0:
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close returns the memory.
func (l *listed) Close() error {
	l.hold.Release()
	return nil
}
