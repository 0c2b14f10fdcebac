package upstream

import (
	"net/http"
	"net/url"
)

// Transport returns c as net/http has it, for requests of aileron itself. Their URLs have the scheme https. No redirect
// is followed, and no body is decoded.
func (c *Client) Transport() http.RoundTripper { return transport{c} }

type transport struct{ client *Client }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath,
		RawQuery: r.URL.RawQuery}
	if out.Host = r.URL.Host; r.URL.Port() == "" {
		out.URL.Host = r.URL.Host + ":443"
	}
	if _, has := out.Header["User-Agent"]; !has {
		out.Header.Set("User-Agent", "aileron")
	}
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = NewBody(r.Body)
	}
	return t.client.RoundTrip(out, Route{HTTP2: true})
}
