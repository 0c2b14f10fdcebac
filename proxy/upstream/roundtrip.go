package upstream

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// Route describes how a request may travel.
type Route struct {
	Key        Key  // of the credential whose connections it may use; zero: it carries none
	HTTP2      bool // its client speaks HTTP/2
	Idempotent bool // it may be repeated although it may have arrived
	// ResponseHeader bounds the time from the end of the request to the head of its response; 0: as
	// Options.ResponseHeader.
	ResponseHeader time.Duration
}

// RoundTrip sends r and returns the head of its response. The body of r is nil
// or a [*Body], and its URL has a host with a port.
//
// r is sent a second time, at most, when the connection that was tried turned
// out dead before a byte of the request was on it, or when it is idempotent and
// the connection died before a byte of the response; and only while no byte of
// its body is gone. It is sent a second time, whatever it is, when the host said
// that it did not process it, and its body is kept: up to 64 KiB are.
//
// When RoundTrip has returned, nothing refers to r and its URL any more: they are
// the caller's again. Over HTTP/2 the header may still be read. An upload that goes
// on refers to the [*Body].
//
// The error is an [*Error].
func (c *Client) RoundTrip(r *http.Request, route Route) (*http.Response, error) {
	host := r.URL.Host
	pool := c.pool(route.Key) // of all attempts, even if Keep retires it meanwhile
	body, _ := r.Body.(*Body)
	defer body.drop()
	for try, switched, sent := 0, false, false; ; try++ {
		h2 := c.versions.useH2(r, route.HTTP2)
		a := attempt{limit: cmp.Or(route.ResponseHeader, c.opts.ResponseHeader)}
		res, err := c.send(r, pool, &a, h2)
		if err == nil {
			return checkStatus(res, host, &a)
		}
		if cause := body.failure(); cause != nil && r.Context().Err() == nil {
			return nil, &Error{Kind: RequestBody, Host: host, Sent: sent || a.mayHaveArrived(), Err: cause}
		}
		if !switched && !a.mayHaveArrived() && c.versions.rememberFailure(host, err, h2) {
			switched = true
			try-- // nothing was sent
			continue
		}
		e := c.classify(r.Context(), host, err, &a)
		sent = sent || a.mayHaveArrived() && e.Kind != Unprocessed
		e.Sent = sent
		if e.Kind == Unprocessed && try == 0 && body.rewind() {
			continue
		}
		dead := e.Kind.isBrokenConn() && (a.wroteNothing() || route.Idempotent && !a.gotByte.Load())
		if try > 0 || !dead || body.Sent() > 0 {
			return nil, e
		}
	}
}

// checkStatus returns res, or an error where its status cannot be that of a final response. A
// number that is registered nowhere, such as 999, is passed on as it is. net/http takes any number over HTTP/2.
func checkStatus(res *http.Response, host string, a *attempt) (*http.Response, error) {
	if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 999 {
		_ = res.Body.Close()
		return nil, &Error{Kind: InvalidStatus, Host: host, Sent: true}
	}
	return res, nil
}

// send makes one attempt.
func (c *Client) send(r *http.Request, p *pool, a *attempt, h2 bool) (*http.Response, error) {
	a.h2 = h2
	if h2 {
		return c.sendH2(r, p, a)
	}
	var body *attemptBody
	if from, ok := r.Body.(*Body); ok {
		body = from.newAttempt(c.opts.Stall, a.stall)
	}
	res, err := p.h1.roundTrip(r, body, a)
	if err != nil && body != nil {
		_ = body.Close()
	}
	return res, err
}

// sendH2 makes one attempt over HTTP/2.
func (c *Client) sendH2(r *http.Request, p *pool, a *attempt) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context()) // of a response, it ends with its body
	a.cancel = cancel
	out := r.WithContext(httptrace.WithClientTrace(ctx, a.trace()))
	out.URL = new(url.URL) // net/http may read it after it has returned a response
	*out.URL = *r.URL
	if from, ok := r.Body.(*Body); ok {
		from.keep(&c.keptBodies)
		out.Body = from.newAttempt(c.opts.Stall, a.stall)
	}
	res, err := p.roundTripH2(out, a)
	a.endWait()
	if err != nil {
		cancel()
		if out.Body != nil {
			_ = out.Body.Close()
		}
		return nil, err
	}
	a.gotHeader.Store(true)
	c.versions.remember(r.URL.Host, choseH2)
	return res, nil
}

// stall ends an attempt whose host does not take the body. One that has responded
// may take its time with the rest.
func (a *attempt) stall() {
	if !a.gotHeader.Load() {
		a.stalled.Store(true)
		a.cancel()
	}
}
