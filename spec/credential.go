package spec

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// readCredential reads a kind, or an object with a kind, a scope and a place.
// The path and the hosts must have been read.
func (op *Operation) readCredential(n node) {
	raw, has := n.o.Get("credential")
	if !has {
		return
	}
	path := n.at("credential")
	in := &Injection{In: "header"}
	switch v := raw.(type) {
	case string:
		in.Kind = Kind(v)
	case strictjson.Object:
		in.read(n, v, path)
	default:
		n.diags.add(path, "it is neither a kind nor an object")
		return
	}
	if !in.Kind.isKnown() {
		n.diags.add(path, "the kind %q is not one of %s", in.Kind, joined(Kinds()))
	}
	in.setDefaults()
	op.Injection = in
	if why := op.badInjection(); why != "" {
		n.diags.add(path+".inject", "%s", why)
	}
	_, hasMethod := n.o.Get("method")
	if _, hasPath := n.o.Get("path"); !hasMethod || !hasPath {
		n.diags.add(path, "an operation with a credential must declare a method and a path")
	}
	for i, h := range op.Hosts {
		if h.Port == 80 {
			n.diags.add(n.item("hosts", i), "port 80 is in clear, and this operation has a credential")
		}
		if strings.Contains(h.Name, "_") {
			n.diags.add(n.item("hosts", i), "no certificate is issued for a name with an underscore, and this operation has "+
				"a credential")
		}
		if h.Wildcard && !n.flag("wildcard_credential") {
			n.diags.add(n.item("hosts", i), "a wildcard host gets a credential only with \"wildcard_credential\": true")
		}
	}
}

func (in *Injection) read(n node, v strictjson.Object, path string) {
	c, _ := n.diags.open(v, path, "kind", "scope", "inject")
	in.Kind, in.Scope = Kind(c.text("kind", true)), c.text("scope", false)
	inject, has := c.o.Get("inject")
	if !has {
		return
	}
	if i, ok := n.diags.open(inject, path+".inject", "in", "name", "format", "username"); ok {
		in.In = cmp.Or(i.choice("in", "header", "query", "path"), "header")
		in.Name, in.Format = i.text("name", false), i.text("format", false)
		in.Username = i.text("username", false)
	}
}

// setDefaults fills in what the connector leaves out: Authorization with the
// scheme of the kind (RFC 6750 section 2.1, RFC 7617), and the bare secret in
// any other place.
func (in *Injection) setDefaults() {
	if in.In == "header" && in.Name == "" {
		in.Name = "Authorization"
	}
	if in.Format != "" {
		return
	}
	switch {
	case in.In != "header" || !strings.EqualFold(in.Name, "Authorization"):
		in.Format = "{secret}"
	case in.Username != "":
		in.Format = "Basic {secret}"
	default:
		in.Format = in.Kind.row().format
	}
}

// forbiddenFields are header fields in which no credential may stand, as they
// belong to the connection, the framing, the routing, or aileron itself.
var forbiddenFields = strings.Fields(`
	accept-encoding alt-used connection content-encoding content-length content-range content-type date
	early-data expect forwarded host http2-settings if-range keep-alive max-forwards origin range te trailer
	transfer-encoding upgrade user-agent via x-http-method x-http-method-override x-method-override
	x-original-url x-rewrite-url`)

// forbiddenPrefixes are the prefixes of such fields.
var forbiddenPrefixes = []string{"proxy-", "sec-", "x-forwarded-"}

// badInjection returns why the credential cannot stand in its place, or "" if
// it can.
func (op *Operation) badInjection() string {
	in := op.Injection
	if strings.Count(in.Format, "{secret}") != 1 || len(in.Format) > 256 || !plain.IsPrintable(in.Format) {
		return "the format " + quote(in.Format) + " does not hold {secret} once, in plain ASCII"
	}
	if in.Kind.HasUsername() && in.In != "header" {
		return "a " + string(in.Kind) + " credential stands in a header"
	}
	if why := in.badUsername(); why != "" {
		return why
	}
	switch in.In {
	case "header":
		lower := strings.ToLower(in.Name)
		if !isToken(in.Name) {
			return quote(in.Name) + " is not a header field's name"
		}
		begins := func(prefix string) bool { return strings.HasPrefix(lower, prefix) }
		if slices.Contains(forbiddenFields, lower) || slices.ContainsFunc(forbiddenPrefixes, begins) {
			return quote(in.Name) + " is not a header field that a credential may stand in"
		}
	case "query":
		if !plain.IsName(in.Name, "._-") {
			return quote(in.Name) + " is not a plain query name"
		}
	case "path":
		for _, s := range op.Path.Segments() {
			if s.Name == in.Name && !s.Rest && s.Name != "" {
				return ""
			}
		}
		return "the path has no variable {" + in.Name + "} of one segment"
	}
	return ""
}

// badUsername returns why the operation cannot declare its username, or "" if it
// can. The first colon ends a username (RFC 7617 section 2).
func (in *Injection) badUsername() string {
	switch {
	case in.Username == "":
		return ""
	case in.Kind.HasUsername():
		return "the username of a " + string(in.Kind) + " credential is that of its binding"
	case in.In != "header":
		return "a credential with a username stands in a header"
	case !plain.IsName(in.Username, "._-"):
		return "the username " + quote(in.Username) + " is not letters, digits, dots, dashes and underscores"
	}
	return ""
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2, as the names
// of fields are, of at most 64 bytes.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !plain.IsAlnum(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// Kind is the kind of a credential, as connectors and bindings name it.
type Kind string

// The kinds of credentials.
const (
	KindOAuth2 Kind = "oauth2"  // an access token of OAuth 2 (RFC 6749)
	KindAPIKey Kind = "api_key" // a key that the service issued
	KindBearer Kind = "bearer"  // a token of another origin
	KindBasic  Kind = "basic"   // a username and a password (RFC 7617)
)

// kindRow is what the other packages need to know about a kind.
type kindRow struct {
	kind     Kind
	format   string // in Authorization, unless the connector declares one
	username bool   // the binding has a username, and the value stands in a header
	login    bool   // the secret is the result of a login, not a thing that a person has at hand

	// compose returns what replaces {secret}; nil: the secret itself.
	compose func(username, secret string) string
}

// kinds has a row for each kind, in the order in which messages list them. A
// new kind is a constant and a row here, and its line in docs/connectors.md;
// one with a username is also named in vault's Binding.Check.
var kinds = []kindRow{
	{kind: KindOAuth2, format: "Bearer {secret}", login: true},
	{kind: KindAPIKey, format: "Bearer {secret}"},
	{kind: KindBearer, format: "Bearer {secret}"},
	{kind: KindBasic, format: "Basic {secret}", username: true, compose: basicCredentials},
}

// basicCredentials returns the credentials of the Basic scheme (RFC 7617 section 2).
func basicCredentials(username, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(username + ":" + secret))
}

// Kinds returns every kind of credential.
func Kinds() []Kind {
	var list []Kind
	for _, r := range kinds {
		list = append(list, r.kind)
	}
	return list
}

// row returns the row of k, and the zero row if k is none of [Kinds].
func (k Kind) row() kindRow {
	i := slices.IndexFunc(kinds, func(r kindRow) bool { return r.kind == k })
	if i < 0 {
		return kindRow{}
	}
	return kinds[i]
}

// isKnown reports whether k is one of [Kinds].
func (k Kind) isKnown() bool { return k.row().kind != "" }

// HasUsername reports whether a credential of the kind consists of a username
// and a secret, not of a secret alone.
func (k Kind) HasUsername() bool { return k.row().username }

// NeedsLogin reports whether the secret of the kind is the result of a login.
func (k Kind) NeedsLogin() bool { return k.row().login }

// Compose returns the value that replaces {secret} in an [Injection.Format].
// The result is a secret, too.
func (k Kind) Compose(username, secret string) string {
	if compose := k.row().compose; compose != nil {
		return compose(username, secret)
	}
	return secret
}
