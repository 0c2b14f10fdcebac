package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// APIHost is the name under which a sandbox reaches its own session's API. It is
// never resolved.
const APIHost = "aileron.internal"

// api serves the session's own endpoints, which are the sandbox's view of its
// session. The token authorises these and nothing else.
func (p *Plane) api(listener Listener, r *http.Request) *http.Response {
	form := formOf(r) // before a delay drops the head
	return inForm(form, p.answerAPI(listener, r))
}

func (p *Plane) answerAPI(listener Listener, r *http.Request) *http.Response {
	path := apiPath(r)
	if path == "/healthz" || path == "/v1/healthz" {
		if p.draining.Err() != nil {
			return p.rejectAPI(listener, r, deny(reasonDraining, "the session is ending"))
		}
		return jsonResponse(r, map[string]string{"status": "ok"})
	}
	// A web page in the user's browser can reach a loopback port; it cannot
	// leave these out (Fetch standard, section 3.2).
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return p.rejectAPI(listener, r, deny(reasonCrossSite, "the request comes from a web page"))
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	bearer := strings.EqualFold(scheme, "bearer") && p.isToken(strings.TrimSpace(token))
	command := isCallPath(path) && isCommand(r) && (listener.Sealed || p.hasProxyToken(r))
	if !bearer && !command {
		d := deny(reasonToken, "the API wants this session's token")
		d.status = http.StatusUnauthorized // 407 is a proxy's
		return p.rejectAPI(listener, r, d)
	}
	switch {
	case path == "/v1/session" && r.Method == http.MethodGet:
		return jsonResponse(r, p.Describe())
	case path == operationsPath && r.Method == http.MethodPost:
		return p.runOperation(listener, r)
	case path == actionsPath && r.Method == http.MethodPost:
		return p.runAction(listener, r)
	case path == requestsPath && r.Method == http.MethodPost:
		return p.runRequest(listener, r)
	case path == "/v1/session", path == actionsPath, path == operationsPath, path == requestsPath:
		return p.rejectAPI(listener, r, deny(reasonMethod, "%s is not what this endpoint answers", r.Method))
	case strings.HasPrefix(path, "/v1/audit"), strings.HasPrefix(path, "/v1/vault"), path == "/v1/session/stop":
		return p.rejectAPI(listener, r, deny(reasonOwnerOnly, "this endpoint is the owner's"))
	}
	return p.rejectAPI(listener, r, deny(reasonNotFound, "there is no such endpoint"))
}

func (p *Plane) rejectAPI(listener Listener, r *http.Request, d *Denial) *http.Response {
	x := p.newExchange(listener, audit.SourceRequestBoundary, Authority{Host: APIHost, Port: 80}, "http", r)
	return x.reject(d).Response(r)
}

func jsonResponse(r *http.Request, v any) *http.Response {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"},
			"Content-Length": {strconv.Itoa(out.Len())}},
		Body: io.NopCloser(&out), ContentLength: int64(out.Len()),
	}
}
