package modify

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// InjectCredential puts a credential into its slot: exactly one value in
// exactly one place.
//
// Request: the header field of the operation's injection has the credential as
// its only value, whatever the client sent; or the query has one more pair,
// behind the others; or the path's variable is replaced.
type InjectCredential struct {
	Operation  *spec.Operation // has an Injection
	Credential vault.Credential
}

// ModifyRequest implements martian.RequestModifier.
func (m InjectCredential) ModifyRequest(r *http.Request) error {
	how := m.Operation.Injection
	secret := how.Kind.Compose(m.Credential.Username, m.Credential.Secret.Reveal())
	value := strings.ReplaceAll(how.Format, "{secret}", secret)
	switch how.In {
	case "header":
		r.Header[canonical(how.Name)] = []string{value}
	case "query":
		pair := url.QueryEscape(how.Name) + "=" + url.QueryEscape(value)
		if r.URL.RawQuery != "" {
			pair = r.URL.RawQuery + "&" + pair
		}
		r.URL.RawQuery = pair
	case "path":
		return m.replaceInPath(r, value)
	default:
		return fail(NoPlace, "the connector %s names an unknown place for its credential", m.Operation.Connector.FQN)
	}
	return nil
}

func (m InjectCredential) replaceInPath(r *http.Request, value string) error {
	name := m.Operation.Injection.Name
	escaped, ok := m.Operation.Path.Replace(r.URL.EscapedPath(), name, url.PathEscape(value))
	if !ok {
		return fail(NoPlace, "the credential of %s has no place in the path", m.Operation.Connector.FQN)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return fail(NoPlace, "the credential of %s cannot stand in a path", m.Operation.Connector.FQN)
	}
	r.URL.Path, r.URL.RawPath = path, escaped
	return nil
}

// canonical is textproto's name for a header field.
func canonical(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }
