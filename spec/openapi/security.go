package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// scheme is a way of the document to authenticate, as the credential of a connector.
type scheme struct {
	name   string
	kind   spec.Kind
	scoped bool // operations name the scopes that they need
	inject *scaffold.Inject
	login  *spec.OAuth2 // of kind oauth2, without its scopes
	note   string       // what of it is left out, or ""
	why    string       // a connector cannot have it, or ""
	rank   int          // the lower, the sooner it is chosen among equals
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
		if r.scheme.kind == spec.KindOAuth2 {
			r.scheme.login = r.anyLogin()
		}
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
		r.notes.Add("a credential, as the document declares none: if the API needs one, pass --credential", "")
	}
	if r.scheme != nil && r.scheme.note != "" {
		r.notes.Add(r.scheme.note+": the user binds a token", r.scheme.name)
	}
}

// anyLogin returns the first login that the document describes, or nil.
func (r *reader) anyLogin() *spec.OAuth2 {
	for _, name := range r.root.get("components").get("securitySchemes").firstKeys(maxAlternatives) {
		if s := r.schemeOf(name); s.login != nil {
			return s.login
		}
	}
	return nil
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
				foreign.Clean(alternative[0].name, 40), foreign.Clean(r.scheme.name, 40))
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
		s.readFlows(n.get("flows"))
	case declared == "openIdConnect":
		s.kind, s.rank, s.scoped = spec.KindBearer, 2, true
		s.note = "the login of OpenID Connect, whose addresses are not in the document"
	case declared == "apiKey":
		s.readKey(n)
	case declared == "mutualTLS":
		s.why = "a client certificate"
	default:
		s.why = "a kind of credential that no connector has"
	}
}

// flows are the flows of the type oauth2 that a connector can have, the best first, with their grants.
var flows = []struct{ name, grant string }{
	{"authorizationCode", logins.GrantCode}, {"deviceAuthorization", logins.GrantDevice},
	{"clientCredentials", logins.GrantClient},
}

// readFlows reads the flows of the type oauth2. Without one that a connector can have, a token is all that is needed.
func (s *scheme) readFlows(all *node) {
	s.rank, s.scoped = 2, true
	for _, flow := range flows {
		n := all.get(flow.name)
		if n == nil {
			continue
		}
		login := &spec.OAuth2{Grant: flow.grant, TokenURL: n.get("tokenUrl").scalar()}
		switch flow.grant {
		case logins.GrantCode:
			login.AuthorizeURL = n.get("authorizationUrl").scalar()
		case logins.GrantDevice:
			login.DeviceURL = n.get("deviceAuthorizationUrl").scalar()
		}
		if login.Check(login.AskedHosts()) == nil {
			s.kind, s.login = spec.KindOAuth2, login
			return
		}
	}
	s.kind = spec.KindBearer
	s.note = "the login of OAuth 2, as no flow has https addresses of an authorization code, a device code or a client"
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

const maxScopes = 64

// addScopes adds the scopes that an operation asks for.
func (r *reader) addScopes(op *node) {
	if !r.scheme.scoped || len(r.scopes) >= maxScopes {
		return
	}
	list := op.get("security")
	if list == nil {
		list = r.root.get("security")
	}
	for _, requirement := range list.first(maxAlternatives) {
		for _, scope := range requirement.get(r.scheme.name).first(maxInputs) {
			text := foreign.Clean(scope.scalar(), 256)
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
	need := &scaffold.Need{Kind: r.scheme.kind, Scope: "Use " + c.About, Login: r.scheme.login}
	switch {
	case need.Kind == spec.KindOAuth2 && need.Login == nil:
		host, _, _ := strings.Cut(c.Hosts()[0], ":")
		need.Login = scaffold.StandInLogin(strings.TrimPrefix(host, "*."))
		r.notes.Add("the addresses of the login, which the document does not have: those in manifest.toml are stand-ins", "")
	case need.Login != nil:
		need.Login.Scopes = r.namedScopes()
	case len(r.scopes) > 0:
		need.Scope += foreign.Clean(", with the scopes "+strings.Join(r.scopes, " "), maxScopeText)
	}
	return need
}

// leaveOutTokens leaves out the operations that ask for tokens with the credential, which aileron itself does.
func (r *reader) leaveOutTokens(c *scaffold.Connector) {
	if r.scheme == nil || r.scheme.login == nil {
		return
	}
	c.Operations = slices.DeleteFunc(c.Operations, func(op scaffold.Operation) bool {
		asks := op.AsksForTokens(r.scheme.login)
		if asks {
			r.notes.Add("operations that issue or revoke tokens with the credential, which only aileron may ask for",
				op.Method+" "+op.Path)
		}
		return asks
	})
}

// maxScopeText bounds what is said of scopes to the person who makes a token.
const maxScopeText = 1000

// namedScopes returns the scopes that a manifest may have.
func (r *reader) namedScopes() []string {
	return slices.DeleteFunc(slices.Clone(r.scopes), func(s string) bool {
		one := *r.scheme.login
		one.Scopes = []string{s}
		isBad := one.Check(one.AskedHosts()) != nil
		if isBad {
			r.notes.Add("scopes that are not plain words", foreign.Clean(s, 40))
		}
		return isBad
	})
}
