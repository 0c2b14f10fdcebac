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
	operation *spec.Operation
	name      string     // of the field, canonical
	value     *[1]string // a pointer, so that no format prints it
}

// NewInjectCredential returns the modifier for a credential of an operation that
// has an Injection. It is made once for many requests.
func NewInjectCredential(op *spec.Operation, c vault.Credential) *InjectCredential {
	secret := op.Injection.Compose(c.Username, c.Secret.Reveal())
	value := strings.ReplaceAll(op.Injection.Format, "{secret}", secret)
	return &InjectCredential{operation: op, name: canonical(op.Injection.Name), value: &[1]string{value}}
}

// ModifyRequest implements martian.RequestModifier.
func (m *InjectCredential) ModifyRequest(r *http.Request) error {
	how, value := m.operation.Injection, m.value[0]
	switch how.In {
	case "header":
		r.Header[m.name] = m.value[:] // no modifier changes a value in place
	case "query":
		pair := url.QueryEscape(how.Name) + "=" + url.QueryEscape(value)
		if r.URL.RawQuery != "" {
			pair = r.URL.RawQuery + "&" + pair
		}
		r.URL.RawQuery = pair
	case "path":
		return m.replaceInPath(r, value)
	default:
		return fail(NoPlace, "the connector %s names an unknown place for its credential", m.operation.Connector.FQN)
	}
	return nil
}

func (m *InjectCredential) replaceInPath(r *http.Request, value string) error {
	name := m.operation.Injection.Name
	escaped, ok := m.operation.Path.Replace(r.URL.EscapedPath(), name, url.PathEscape(value))
	if !ok {
		return fail(NoPlace, "the credential of %s has no place in the path", m.operation.Connector.FQN)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return fail(NoPlace, "the credential of %s cannot stand in a path", m.operation.Connector.FQN)
	}
	r.URL.Path, r.URL.RawPath = path, escaped
	return nil
}

// canonical is textproto's name for a header field.
func canonical(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }
