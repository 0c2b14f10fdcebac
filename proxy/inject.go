package proxy

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// injection is the step that puts a credential into its slot: exactly one
// value in exactly one place. A value that the client sent there is replaced.
type injection struct {
	how   spec.Injection
	bound Bound
	match spec.Match
}

func (i injection) ModifyRequest(r *http.Request) error {
	secret := i.bound.Credential.Secret.Reveal()
	if i.how.Kind == "basic" {
		secret = base64.StdEncoding.EncodeToString([]byte(i.bound.Credential.Username + ":" + secret))
	}
	value := strings.ReplaceAll(i.how.Format, "{secret}", secret)
	switch i.how.In {
	case "header":
		r.Header[canonical(i.how.Name)] = []string{value}
	case "query":
		pair := url.QueryEscape(i.how.Name) + "=" + url.QueryEscape(value)
		if r.URL.RawQuery != "" {
			pair = r.URL.RawQuery + "&" + pair
		}
		r.URL.RawQuery = pair
	case "path":
		escaped, ok := i.match.Operation.Path.Replace(r.URL.EscapedPath(), i.how.Name, url.PathEscape(value))
		if !ok {
			return deny(reasonCredential, "the credential of %s has no place in the path", i.match.Operation.Connector.FQN)
		}
		path, err := url.PathUnescape(escaped)
		if err != nil {
			return deny(reasonCredential, "the credential of %s cannot stand in a path", i.match.Operation.Connector.FQN)
		}
		r.URL.Path, r.URL.RawPath = path, escaped
	default:
		return deny(reasonCredential, "the connector %s names an unknown place for its credential", i.match.Operation.Connector.FQN)
	}
	return nil
}
