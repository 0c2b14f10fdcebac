package auditpage

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// decidePath is the path of decisions.
const decidePath = "/api/decide"

// policy allows the files of this origin, requests to it, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// setHeaders sets the header fields that every response has, refusals included.
func setHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Frame-Options":              "DENY",
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
		"Cache-Control":                "no-store",
	} {
		h.Set(name, value)
	}
}

// guard refuses requests of other web sites, and requests under another name.
func (p *Page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if kind, reason := p.foreign(r); kind != "" {
			p.reports.once("refused a request " + kind)
			// Else a site whose requests are refused could hold all connections for as long as they may be idle.
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusForbidden, reason)
			return
		}
		acts := r.URL.Path == "/session" || r.URL.Path == decidePath && p.opts.Desk != nil
		if r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Method != http.MethodPost || !acts) {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "this only reads: "+termsafe.Line(r.Method)+" is not allowed")
			return
		}
		defer p.idle.begin()()
		next.ServeHTTP(w, r)
	})
}

// foreign returns what kind of request this is if it is not of the page itself, and the reason for its refusal.
func (p *Page) foreign(r *http.Request) (kind, reason string) {
	// A name of an attacker's domain may lead to this address (DNS rebinding). Then its pages are of the same origin as
	// this server, for the browser: only Host shows the name.
	if r.Host != p.host {
		return "under another name", fmt.Sprintf("this page is %s, and not %q (DNS rebinding?): open the link that "+
			"aileron audit serve printed", p.origin, bounded(r.Host, 128))
	}
	// Loopback servers on other ports are other origins, but the same site: the cookie's SameSite does not stop them.
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && origins[0] != p.origin {
		return "of another web site", fmt.Sprintf("asked by another web site, %q", bounded(origins[0], 128))
	}
	if r.Method == http.MethodPost && r.Header.Get("Origin") == "" {
		return "of another program", "a request without Origin may not do this"
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin":
	case "none": // typed, or opened from a terminal
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			break
		}
		fallthrough
	default:
		return "of another web site", fmt.Sprintf("asked by another web site (Sec-Fetch-Site: %s): open the link that "+
			"aileron audit serve printed", bounded(site, 32))
	}
	return "", ""
}

// refuse responds with one line of text.
func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, reason+"\n") //nolint:gosec // plain text, with nosniff
}

// quiet returns a logger that drops the messages of net/http: they quote what clients send.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
