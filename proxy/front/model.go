package front

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy"
)

// Model is a provider's API that a listener serves below [Model.Path], for a client that may ignore the proxy and the
// session's CA. A request with one of its keys is decided as one in a tunnel to its host would be, and sent if it is an
// operation of a connector.
type Model struct {
	Name string   // a segment of a path
	Host string   // of the provider, at port 443
	Base string   // what the rest of a path is appended to; "" or /v1
	Keys []string // each opens it, in the place of the provider's key, and nothing else
}

// modelPath is the path below which models are.
const modelPath = "/model/"

// hintModelKey is for a client that prefers a login of its own.
const hintModelKey = "Use the API key of the environment, which the session has set, and not a login of your own."

// hintModelPage is for a page of the web.
const hintModelPage = "The model endpoint is for programs of the session, and no page of a browser may use it."

// Path returns the path at which the listener serves the API.
func (m Model) Path() string { return modelPath + m.Name }

// model returns the model of a request's target, and the target at its provider.
func (l Listener) model(target string) (m Model, rest string, ok bool) {
	for _, m := range l.Models {
		if rest, ok := strings.CutPrefix(target, m.Path()); ok && strings.HasPrefix(rest, "/") {
			return m, m.Base + rest, true
		}
	}
	return Model{}, "", false
}

// isOpenTo reports whether a request has a key, in one of the fields in which clients send that of a provider. The
// other field may have a key of the user's, which decides nothing and is not sent on.
func (m Model) isOpenTo(r *http.Request) bool {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return m.isKey(r.Header.Get("X-Api-Key")) ||
		strings.EqualFold(scheme, "bearer") && m.isKey(strings.TrimSpace(bearer))
}

func (m Model) isKey(s string) bool {
	return slices.ContainsFunc(m.Keys, func(key string) bool {
		return key != "" && subtle.ConstantTimeCompare([]byte(s), []byte(key)) == 1
	})
}

// serveModel responds to a request for a model, which target leads to at its provider.
func (h *handler) serveModel(m Model, target string, r *http.Request) *http.Response {
	at := h.arrival(audit.SourceRequestBoundary, hostport.Authority{Host: m.Host, Port: 443}, "https")
	var d *proxy.Denial
	switch {
	// See api.authorize: a web page cannot leave these out.
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		d = proxy.ReasonCrossSite.Deny("the request comes from a web page").WithHint(hintModelPage)
	case !m.isOpenTo(r):
		d = proxy.ReasonToken.Deny("the model endpoint requires the key that this session has set for it").
			WithStatus(http.StatusUnauthorized).WithHint(hintModelKey)
	}
	r.RequestURI, r.Host = target, m.Host
	for _, name := range []string{"Authorization", "X-Api-Key", "Proxy-Authorization"} {
		r.Header.Del(name)
	}
	if d != nil {
		return h.front.plane.Reject(at, r, d).Response(r)
	}
	inner := h.tunnel(at)
	inner.counted, inner.operationsOnly = true, true
	return inner.Answer(r)
}
