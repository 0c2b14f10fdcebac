// Package api is the session's own HTTP API, a sandbox's view of its session: CONTRACT section 4.
//
// [New] makes the API of a plane, and [API.Answer] responds to a request for it, which package front has read:
//
//	res := api.New(plane).Answer(api.Client{Trusted: listener.Sealed}, req)
//
// The endpoints are in [API.Answer]'s switch. Those that call an operation (call.go), an action (action.go) or carry a
// whole request (request.go) decide and send by [proxy.Decide] and [proxy.Plane.Do], as a request on the wire does, and
// their response is an envelope around the upstream's (envelope.go), or one that a shell can read (shim.go).
package api

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
)

// API serves the endpoints of one session. Its methods are safe for concurrent use.
type API struct {
	plane       *proxy.Plane
	invocations chan struct{} // calls that are parsed
	listings    chan struct{} // requests that read all operations
	salt        []byte        // see [spec.ParseUpload]
}

// New returns the API of a plane.
func New(plane *proxy.Plane) *API {
	a := &API{plane: plane, invocations: make(chan struct{}, invocationReads), listings: make(chan struct{}, 1),
		salt: make([]byte, saltSize)}
	_, _ = rand.Read(a.salt) // which does not fail
	return a
}

// SurfaceField is the header field by which a client of the API may say that it calls operations for another protocol.
// What it says is recorded and decides nothing.
const SurfaceField = "X-Aileron-Surface"

// surfaces are the values of SurfaceField that are recorded.
var surfaces = []string{"mcp"}

// surfaceFields returns the fields of the rows of a call that come from SurfaceField.
func surfaceFields(r *http.Request) map[string]any {
	if name := r.Header.Get(SurfaceField); slices.Contains(surfaces, name) {
		return map[string]any{"surface": name}
	}
	return nil
}

// Client is what its connection proves about a client.
type Client struct {
	Redirected bool // it ignored the proxy
	// Trusted: it is the session's own sandbox, or has shown the token of the proxy.
	Trusted bool
}

// Arrival returns what the rows of a client's requests to the API say of how they came.
func (c Client) Arrival() proxy.Arrival {
	return proxy.Arrival{Source: audit.SourceRequestBoundary, Redirected: c.Redirected,
		Authority: proxy.Authority{Host: proxy.APIHost, Port: 80}, Scheme: "http"}
}

// Answer responds to a request to one of the session's endpoints. The token authorises these and nothing else.
func (a *API) Answer(client Client, r *http.Request) *http.Response {
	path := apiPath(r)
	if path == "/healthz" || path == "/v1/healthz" {
		if a.plane.Draining().Err() != nil {
			return a.Deny(client.Arrival(), r, proxy.ReasonDraining.Deny("the session is ending"))
		}
		return jsonResponse(r, map[string]string{"status": "ok"})
	}
	if d := a.authorize(client, path, r); d != nil {
		return a.Deny(client.Arrival(), r, d)
	}
	var d *proxy.Denial
	switch {
	case path == "/v1/session" && r.Method == http.MethodGet:
		var res *http.Response
		if res, d = a.describe(r); d == nil {
			return res
		}
	case path == listPath && r.Method == http.MethodGet:
		var res *http.Response
		if res, d = a.list(r); d == nil {
			return res
		}
	case path == operationsPath && r.Method == http.MethodPost:
		return a.serveCall(client, r, audit.SourceConnectorShim, (*call).runOperation)
	case path == actionsPath && r.Method == http.MethodPost:
		return a.serveCall(client, r, audit.SourceConnectorShim, (*call).runAction)
	case path == helpPath && r.Method == http.MethodPost:
		return a.serveCall(client, r, audit.SourceConnectorShim, (*call).runHelp)
	case path == requestsPath && r.Method == http.MethodPost:
		return a.serveCall(client, r, audit.SourceRequestBoundary, (*call).runRequest)
	case strings.HasPrefix(path, proxy.ApprovalsPath):
		var res *http.Response
		if res, d = a.approval(r, strings.TrimPrefix(path, proxy.ApprovalsPath)); d == nil {
			return res
		}
	case path == "/v1/session", path == listPath, path == actionsPath, path == operationsPath, path == requestsPath,
		path == helpPath:
		d = proxy.ReasonMethod.Deny("%s is not what this endpoint answers", r.Method)
	case strings.HasPrefix(path, "/v1/audit"), strings.HasPrefix(path, "/v1/vault"), path == "/v1/session/stop":
		d = proxy.ReasonOwnerOnly.Deny("this endpoint is the owner's")
	default:
		d = proxy.ReasonNotFound.Deny("there is no such endpoint")
	}
	return a.Deny(client.Arrival(), r, d)
}

// authorize denies a request of a web page, and one without the session's token.
func (a *API) authorize(client Client, path string, r *http.Request) *proxy.Denial {
	// A web page in the user's browser can reach a loopback port; it cannot
	// leave these out (Fetch standard, section 3.2).
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return proxy.ReasonCrossSite.Deny("the request comes from a web page")
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	bearer := strings.EqualFold(scheme, "bearer") && a.isToken(strings.TrimSpace(token))
	command := isCallPath(path) && isCommand(r) && client.Trusted
	if !bearer && !command {
		// 407 is a proxy's.
		return proxy.ReasonToken.Deny("the API wants this session's token").WithStatus(http.StatusUnauthorized)
	}
	return nil
}

func (a *API) isToken(s string) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(a.plane.Config().Token)) == 1
}

// isCommand reports whether a client is a connector's command, by what it accepts and sends. Those send no token in
// Authorization: BusyBox's wget would have it in the arguments of its process, which every user of the host may read.
// Where the listener is sealed none is needed, as for the same request to the proxy; elsewhere it is that of a proxy. A
// web page cannot send such a Content-Type, and a client that follows a link sends no such Accept.
func isCommand(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	kind := r.Header.Get("Content-Type")
	return r.Method == http.MethodPost && (kind == "application/json" || isUpload(kind)) &&
		(accept == formShim || accept == formShimJSON)
}

// Deny records the denial of a request, and returns the response in the form that the request asks for.
func (a *API) Deny(at proxy.Arrival, r *http.Request, d *proxy.Denial) *http.Response {
	form := formOf(r) // before a delay drops the head
	return denialInForm(form, r, a.plane.Reject(at, r, d))
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
