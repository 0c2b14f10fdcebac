package spec

import (
	"slices"
	"strings"
)

// readCredential takes a kind, or an object with its scope and its place. The
// path and the hosts must have been read.
func (op *Operation) readCredential(n node) {
	raw, has := n.o["credential"]
	if !has {
		return
	}
	path := n.at("credential")
	in := &Injection{In: "header"}
	switch v := raw.(type) {
	case string:
		in.Kind = Kind(v)
	case object:
		in.read(n, v, path)
	default:
		n.f.add(path, "it is neither a kind nor an object")
		return
	}
	if !in.Kind.isKnown() {
		n.f.add(path, "the kind %q is not one of %s", in.Kind, joined(Kinds()))
	}
	in.setDefaults()
	op.Injection = in
	if why := op.badInjection(); why != "" {
		n.f.add(path+".inject", "%s", why)
	}
	_, hasMethod := n.o["method"]
	if _, hasPath := n.o["path"]; !hasMethod || !hasPath {
		n.f.add(path, "an operation with a credential must declare a method and a path")
	}
	for i, h := range op.Hosts {
		if h.Port == 80 {
			n.f.add(n.item("hosts", i), "port 80 is in clear, and this operation has a credential")
		}
		if h.Wildcard && !n.flag("wildcard_credential") {
			n.f.add(n.item("hosts", i), "a wildcard host gets a credential only with \"wildcard_credential\": true")
		}
	}
}

func (in *Injection) read(n node, v object, path string) {
	c, _ := n.f.open(v, path, "kind", "scope", "inject")
	in.Kind, in.Scope = Kind(c.text("kind", true)), c.text("scope", false)
	inject, has := c.o["inject"]
	if !has {
		return
	}
	if i, ok := n.f.open(inject, path+".inject", "in", "name", "format"); ok {
		in.In, in.Name, in.Format = first(i.choice("in", "header", "query", "path"), "header"), i.text("name", false), i.text("format", false)
	}
}

// setDefaults fills in what CONTRACT leaves to the kind: RFC 6750 section 2.1
// and RFC 7617 in Authorization, the bare secret anywhere else.
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
	default:
		in.Format = in.Kind.row().scheme + " {secret}"
	}
}

// heldFields are header fields in which no credential may stand: they belong
// to the connection, the framing, the routing or the proxy's own promises.
var heldFields = strings.Fields(`
	accept-encoding alt-used connection content-encoding content-length content-range content-type date early-data expect forwarded host
	http2-settings if-range keep-alive max-forwards origin range te trailer transfer-encoding upgrade user-agent via x-http-method
	x-http-method-override x-method-override x-original-url x-rewrite-url`)

// badInjection says why a credential may not stand where it should, "" when
// it may.
func (op *Operation) badInjection() string {
	in := op.Injection
	if strings.Count(in.Format, "{secret}") != 1 || len(in.Format) > 256 || !isPrintable(in.Format) {
		return "the format " + quote(in.Format) + " does not hold {secret} once, in plain ASCII"
	}
	if in.Kind.HasUsername() && in.In != "header" {
		return "a " + string(in.Kind) + " credential stands in a header"
	}
	switch in.In {
	case "header":
		lower := strings.ToLower(in.Name)
		if !isToken(in.Name) {
			return quote(in.Name) + " is not a header field's name"
		}
		if slices.Contains(heldFields, lower) || strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "sec-") || strings.HasPrefix(lower, "x-forwarded-") {
			return quote(in.Name) + " is not a header field that a credential may stand in"
		}
	case "query":
		if !isName(in.Name, "._-") {
			return quote(in.Name) + " is not a plain query name"
		}
	case "path":
		for _, s := range op.Path.segments {
			if s.name == in.Name && !s.rest && s.name != "" {
				return ""
			}
		}
		return "the path has no variable {" + in.Name + "} of one segment"
	}
	return ""
}

// isToken reports a field name of RFC 9110 section 5.6.2, at most 64 bytes.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func isPrintable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
