package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// scheme is a way of the document to authenticate, as the credential of a connector.
type scheme struct {
	name   string
	kind   spec.Kind
	inject *scaffold.Inject
	why    string // a connector cannot have it, or ""
	rank   int    // the lower, the sooner it is chosen among equals
}

// maxAlternatives bounds the ways in which one operation can be authenticated.
const maxAlternatives = 32

// chooseCredential chooses the scheme that serves the most operations: a connector has one credential.
func (r *reader) chooseCredential(all []found) {
	switch r.opts.Credential {
	case "":
	case NoCredential:
		return
	default:
		r.scheme = &scheme{kind: r.opts.Credential}
		return
	}
	count := map[*scheme]int{}
	var order []*scheme
	for _, f := range all {
		for _, alternative := range r.alternatives(f.op) {
			if len(alternative) != 1 || alternative[0].why != "" {
				continue
			}
			s := alternative[0]
			if count[s]++; count[s] == 1 {
				order = append(order, s)
			}
		}
	}
	for _, s := range order {
		if r.scheme == nil || count[s] > count[r.scheme] || count[s] == count[r.scheme] && s.rank < r.scheme.rank {
			r.scheme = s
		}
	}
	if r.scheme == nil && r.root.get("components").get("securitySchemes").size() == 0 {
		r.notes.add("a credential, as the document declares none: if the API needs one, pass --credential", "")
	}
	if r.scheme != nil && r.scheme.kind == spec.KindOAuth2 {
		r.notes.add("the login of OAuth 2: the user binds an access token", r.scheme.name)
	}
}

// alternatives returns the ways in which an operation is authenticated, each a list of schemes that are all needed.
func (r *reader) alternatives(op *node) (all [][]*scheme) {
	list := op.get("security")
	if list == nil {
		list = r.root.get("security")
	}
	for _, requirement := range list.first(maxAlternatives) {
		if len(all) == maxAlternatives {
			break
		}
		schemes := []*scheme{}
		for _, name := range requirement.objectKeys() {
			if len(schemes) == maxAlternatives {
				break
			}
			schemes = append(schemes, r.schemeOf(name))
		}
		all = append(all, schemes)
	}
	return all
}

// credential returns the credential of an operation, nil if it needs none, or why a connector cannot have it.
func (r *reader) credential(op *node) (*scaffold.Credential, string) {
	if r.opts.Credential != "" {
		return r.scheme.credential(), ""
	}
	all := r.alternatives(op)
	why := "that need two credentials at once"
	anonymous := len(all) == 0
	for _, alternative := range all {
		switch {
		case len(alternative) == 0:
			anonymous = true
		case len(alternative) == 1 && alternative[0] == r.scheme:
			r.addScopes(op)
			return r.scheme.credential(), ""
		case len(alternative) == 1 && alternative[0].why != "":
			why = "that need " + alternative[0].why
		case len(alternative) == 1:
			why = fmt.Sprintf("that need the credential %q, where others need %q: make another connector of them",
				clean(alternative[0].name, 40), clean(r.scheme.name, 40))
		}
	}
	if anonymous {
		return nil, ""
	}
	return nil, why
}

// credential returns the scheme in the form of the file.
func (s *scheme) credential() *scaffold.Credential {
	if s == nil {
		return nil
	}
	return &scaffold.Credential{Kind: s.kind, Inject: s.inject}
}

// schemeOf returns the scheme of a name.
func (r *reader) schemeOf(name string) *scheme {
	if r.schemes == nil {
		r.schemes = map[string]*scheme{}
	}
	s := r.schemes[name]
	if s == nil {
		s = &scheme{name: name}
		s.read(r.resolve(r.root.get("components").get("securitySchemes").get(name)))
		r.schemes[name] = s
	}
	return s
}

func (s *scheme) read(n *node) {
	declared := n.get("type").scalar()
	switch way := strings.ToLower(n.get("scheme").scalar()); {
	case n == nil:
		s.why = "a credential that the document does not describe"
	case declared == "http" && way == "bearer":
		s.kind = spec.KindBearer
	case declared == "http" && way == "basic":
		s.kind, s.rank = spec.KindBasic, 3
	case declared == "oauth2":
		s.kind, s.rank = spec.KindOAuth2, 2
	case declared == "openIdConnect":
		s.kind, s.rank = spec.KindOAuth2, 2
	case declared == "apiKey":
		s.readKey(n)
	case declared == "mutualTLS":
		s.why = "a client certificate"
	default:
		s.why = "a kind of credential that no connector has"
	}
}

// readKey reads a scheme of the type apiKey.
func (s *scheme) readKey(n *node) {
	s.kind, s.rank = spec.KindAPIKey, 1
	place, name := n.get("in").scalar(), n.get("name").scalar()
	s.inject = &scaffold.Inject{In: place, Name: name, Format: "{secret}"}
	switch place {
	case "header":
		about := strings.ToLower(n.get("description").scalar())
		if strings.EqualFold(name, "authorization") && strings.Contains(about, "bearer") {
			s.kind, s.inject = spec.KindBearer, nil
		}
	case "query":
		s.rank = 4
	default:
		s.why = "a cookie"
	}
}

const maxScopes = 10

// addScopes adds the scopes that an operation asks for.
func (r *reader) addScopes(op *node) {
	if r.scheme.kind != spec.KindOAuth2 || len(r.scopes) >= maxScopes {
		return
	}
	list := op.get("security")
	if list == nil {
		list = r.root.get("security")
	}
	for _, requirement := range list.first(maxAlternatives) {
		for _, scope := range requirement.get(r.scheme.name).first(maxInputs) {
			text := clean(scope.scalar(), 80)
			if text != "" && !slices.Contains(r.scopes, text) && len(r.scopes) < maxScopes {
				r.scopes = append(r.scopes, text)
			}
		}
	}
}

// need returns the credential that the manifest asks for.
func (r *reader) need(c *scaffold.Connector) *scaffold.Need {
	if !slices.ContainsFunc(c.Operations, func(op scaffold.Operation) bool { return op.Credential != nil }) {
		return nil
	}
	scope := "Use " + c.About
	if len(r.scopes) > 0 {
		scope += ", with the scopes " + strings.Join(r.scopes, " ")
	}
	return &scaffold.Need{Kind: r.scheme.kind, Scope: scope}
}
