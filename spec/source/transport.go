package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	attempts     = 3                // of one request
	maxRedirects = 5                // of one attempt
	maxWait      = 30 * time.Second // that a source may ask for between two attempts
	progressUnit = 16 << 10         // bytes that must arrive within the idle time-out
)

// errIdle is the cause with which a request without progress is canceled.
var errIdle = errors.New("no progress")

// redirectError is returned for a redirect that is not followed.
type redirectError struct{ why string }

// Error implements error.
func (e *redirectError) Error() string { return e.why }

// checkRedirect refuses redirects that leave https or do not end. That they lead to
// no private address is up to the dialer.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return &redirectError{fmt.Sprintf("it redirects more than %d times", maxRedirects)}
	case req.URL.Scheme != "https":
		return &redirectError{fmt.Sprintf("it redirects to %s://%s, and only https is followed",
			req.URL.Scheme, req.URL.Host)}
	case req.URL.User != nil:
		return &redirectError{"it redirects to a URL with a user name"}
	}
	req.Header.Del("Referer")
	keepFromOthers(req, via)
	return nil
}

// secretField is the key of the name of the request field that has a credential, in the context of a request.
type secretField struct{}

// keepFromOthers removes the credential from a request to which a redirect has led, unless all of the way is at the
// host that it is for.
func keepFromOthers(req *http.Request, via []*http.Request) {
	field, ok := req.Context().Value(secretField{}).(string)
	if !ok {
		return
	}
	for _, r := range append(via[1:len(via):len(via)], req) {
		if r.URL.Host != via[0].URL.Host {
			req.Header.Del(field)
		}
	}
}

// request is what is sent, and what reads the response.
type request struct {
	what   string // for errors
	method string
	url    *url.URL
	header http.Header
	body   func() io.Reader // nil: none
	most   int64            // bytes of the response
	secret string           // the field of header that has a credential; "": none

	// read reads the body of a response with status 200. It is called again if the
	// request is repeated.
	read func(res *http.Response, body io.Reader) error
}

// do sends a request until it succeeds, or fails in a way that repeating it does not
// change.
func (c *Client) do(ctx context.Context, r request) error {
	for n := 1; ; n++ {
		err := c.attempt(ctx, r)
		var failed *Error
		if !errors.As(err, &failed) || n == attempts || ctx.Err() != nil || !failed.temporary() {
			return err
		}
		wait := max(failed.RetryAfter, time.Duration(n)*time.Second)
		if c.opts.Notice != nil {
			c.opts.Notice(fmt.Sprintf("%v; trying again in %v", failed, wait))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// temporary reports whether the request may succeed when it is repeated soon.
func (e *Error) temporary() bool {
	switch e.Kind {
	case Unavailable:
		return e.RetryAfter <= maxWait
	case Torn:
		return true
	}
	return false
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.opts.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	if r.secret != "" {
		ctx = context.WithValue(ctx, secretField{}, r.secret)
	}
	var body io.Reader
	if r.body != nil {
		body = r.body()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), body)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", r.what, err)
	}
	req.Header = r.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		return c.failure(ctx, r, r.url.Host, err)
	}
	defer res.Body.Close()
	if err := c.checkStatus(r, res); err != nil {
		return err
	}
	if res.ContentLength > r.most {
		return tooLarge(r, res.Request.URL.Host)
	}
	watched := &progressReader{r: io.LimitReader(res.Body, r.most+1), idle: idle, every: c.opts.Idle}
	if r.read == nil {
		return nil
	}
	err = r.read(res, watched)
	if watched.n > r.most {
		return tooLarge(r, res.Request.URL.Host)
	}
	// A server that notices the cancellation may still end its response as if it were whole.
	if failed := cmp.Or(watched.err, context.Cause(ctx)); failed != nil {
		return c.failure(ctx, r, res.Request.URL.Host, failed)
	}
	return err
}

// progressReader restarts a timer whenever enough has arrived.
type progressReader struct {
	r     io.Reader
	idle  *time.Timer
	every time.Duration
	n     int64 // bytes so far
	since int64 // bytes since the timer was restarted
	err   error // of the source, not io.EOF
}

// Read implements io.Reader.
func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n += int64(n)
	if p.since += int64(n); p.since >= progressUnit {
		p.since = 0
		p.idle.Reset(p.every)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = err
	}
	return n, err
}

func tooLarge(r request, host string) error {
	e := &Error{What: r.what, Host: host, Kind: TooLarge, Detail: fmt.Sprintf("it has more than %d bytes", r.most)}
	return e.withHint()
}

// failure returns the error of a request without a whole response.
func (c *Client) failure(ctx context.Context, r request, host string, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, whose query may be a signature
		if u, parseErr := url.Parse(wrapped.URL); parseErr == nil {
			host = u.Host
		}
	}
	e := &Error{What: r.what, Host: host, Kind: Unreachable, Detail: "no response", Err: err}
	var redirect *redirectError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(context.Cause(ctx), errIdle):
		e.Kind, e.Err = TooSlow, nil
		e.Detail = fmt.Sprintf("less than %d KiB arrived within %v", progressUnit>>10, c.opts.Idle)
	case ctx.Err() != nil:
		return fmt.Errorf("fetch %s: %w", r.what, context.Cause(ctx))
	case errors.As(err, &redirect):
		e.Kind, e.Detail, e.Err = NotAllowed, redirect.why, nil
	case host != r.url.Host && c.opts.Denied != nil && c.opts.Denied(err):
		e.Kind, e.Detail = NotAllowed, "it redirects to a place that must not be reached"
	case errors.As(err, &untrusted):
		e.Detail = "its certificate is not trusted"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Kind, e.Detail, e.Err = Torn, "the response ended early", nil
	}
	return e.withHint()
}

// checkStatus returns the error of a status that is not 200.
func (c *Client) checkStatus(r request, res *http.Response) error {
	e := &Error{What: r.what, Host: res.Request.URL.Host, Status: res.StatusCode}
	e.Detail = fmt.Sprintf("the response has the status %d", res.StatusCode)
	e.RetryAfter = retryAfter(res.Header.Get("Retry-After"))
	switch status := res.StatusCode; {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Kind = NotFound
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && e.RetryAfter > 0:
		e.Kind, e.Detail = Unavailable, fmt.Sprintf("it accepts no more requests now (status %d)", status)
	case status >= http.StatusInternalServerError:
		e.Kind = Unavailable
	default:
		e.Kind = Refused
	}
	return e.withHint()
}

// retryAfter reads the field Retry-After (RFC 9110 section 10.2.3), to the second.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0).Round(time.Second)
	}
	return 0
}
