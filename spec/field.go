package spec

import (
	"slices"
	"strings"
)

// FieldPattern is a request field that operations with a credential accept
// in addition to the registered ones: a name, or all names that begin with a prefix.
type FieldPattern struct {
	Name   string // lower case; a prefix ends in a dash
	Prefix bool
}

// String returns the pattern as it is declared, in lower case.
func (p FieldPattern) String() string {
	if p.Prefix {
		return p.Name + "*"
	}
	return p.Name
}

// covers reports whether p covers a name, in any case. The comparison of lengths,
// of bytes, leaves only ASCII to EqualFold.
func (p FieldPattern) covers(name string) bool {
	if p.Prefix && len(name) > len(p.Name) {
		name = name[:len(p.Name)]
	} else if p.Prefix {
		return false
	}
	return len(name) == len(p.Name) && strings.EqualFold(name, p.Name)
}

// AcceptsField reports whether the operation, or its connector, declares the
// request field, in any case. A declared prefix never covers a reserved
// name, and none is loaded that covers the place of the credential.
func (op *Operation) AcceptsField(name string) bool {
	for _, p := range op.Headers {
		if p.covers(name) {
			return reservedField(strings.ToLower(name)) == ""
		}
	}
	return false
}

// readHeaders reads the list "headers" of a connector or an operation.
func readHeaders(n node) []FieldPattern {
	var patterns []FieldPattern
	for i, v := range n.list("headers", false, maxItems) {
		text, ok := v.(string)
		if !ok {
			n.diags.add(n.item("headers", i), "it is not a string")
			patterns = append(patterns, FieldPattern{})
			continue
		}
		p, why := parseFieldPattern(text)
		switch {
		case why != "":
			n.diags.add(n.item("headers", i), "%q %s", text, why)
			p = FieldPattern{} // covers nothing, and keeps the others' indices
		case slices.Contains(patterns, p):
			n.diags.add(n.item("headers", i), "%q appears twice", text)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// parseFieldPattern reads NAME or PREFIX-*. Unless why is "", no connector can
// declare the pattern.
func parseFieldPattern(s string) (p FieldPattern, why string) {
	name, prefix := strings.CutSuffix(s, "*")
	p = FieldPattern{strings.ToLower(name), prefix}
	switch {
	case !isToken(name) || strings.Contains(p.Name, "*") || !isAlnum(p.Name[0]):
		return p, "is neither the name of a field nor a prefix such as \"acme-*\""
	case p.Prefix && !strings.HasSuffix(p.Name, "-"):
		return p, "is not a prefix that ends in a dash, such as \"acme-*\""
	case p.Prefix:
		return p, reservedPrefix(p.Name)
	}
	if why := reservedField(p.Name); why != "" {
		return p, "cannot be declared: it " + why
	}
	return p, ""
}

// readHeaders reads the fields that the operation declares in addition to those
// of its connector. The credential must have been read.
func (op *Operation) readHeaders(n node) {
	op.Headers = readHeaders(n)
	for i, p := range op.Headers {
		if p.reaches(op) {
			n.diags.add(n.item("headers", i), "%q covers %s, where the credential stands; name the fields one by one",
				p, op.Injection.Name)
		}
	}
}

// shareHeaders reads the connector's fields and adds them to its operations.
func (c *Connector) shareHeaders(top node) {
	c.Headers = readHeaders(top)
	for i, p := range c.Headers {
		for _, t := range c.Tools {
			if j := slices.IndexFunc(t.Operations, p.reaches); j >= 0 {
				op := t.Operations[j]
				top.diags.add(top.item("headers", i), "%q covers %s, where the credential of %s stands; name the fields "+
					"one by one", p, op.Injection.Name, op.Name)
				break
			}
		}
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			op.Headers = append(slices.Clip(c.Headers), op.Headers...)
		}
	}
}

// reaches reports whether the pattern covers the field that the operation's
// credential stands in, or one that servers fold into it.
func (p FieldPattern) reaches(op *Operation) bool {
	if op.Injection == nil || op.Injection.In != "header" {
		return false
	}
	slot, own := foldField(op.Injection.Name), foldField(p.Name)
	return slot == own || p.Prefix && strings.HasPrefix(slot, own)
}

// reservation is a group of request fields that a connector cannot declare, as
// they change what the matched request means.
type reservation struct {
	why      string   // continues "cannot be declared: it …"
	names    []string // folded
	prefixes []string // folded, with the dash at the end
	words    []string // of the name, between dashes
	parts    []string // anywhere in the name
}

// reservations are looked up by folded names: CGI, WSGI and similar interfaces
// read X_Real_Ip and X.Real.Ip as X-Real-Ip.
var reservations = []reservation{
	{why: "belongs to the connection or to the framing of the message (RFC 9110 section 7.6)",
		names: strings.Fields(`connection keep-alive te trailer transfer-encoding content-length upgrade expect
			http2-settings alt-used alt-svc early-data max-forwards host priority`),
		prefixes: strings.Fields(`proxy- x-proxy- sec-`)},
	{why: "is set by aileron, which asks for responses that it can search",
		names: strings.Fields(`accept-encoding grpc-accept-encoding a-im available-dictionary dictionary-id`)},
	{why: "slices the response; declare \"ranges\": true",
		names: strings.Fields(`range if-range`)},
	{why: "carries a credential or a proof of identity",
		names: strings.Fields(`dpop client-cert client-cert-chain remote-user x-remote-user`),
		words: strings.Fields(`auth authn authz jwt saml signature cookie cookie2 mtls clientcert webauth`),
		parts: append(strings.Fields(`authorization authenticat x-ssl- ssl-client client-cert client-verify client-dn
			x-tls-client x-client-s-dn`), credentialWords...)},
	{why: "makes the server act for someone else",
		names: strings.Fields(`sudo x-sudo from`),
		words: strings.Fields(`sudo`),
		parts: strings.Fields(`impersonat behalf remote-user remote-group remote-name run-as act-as`)},
	{why: "claims the client's address or the way that the request came",
		names:    strings.Fields(`forwarded via cdn-loop`),
		prefixes: strings.Fields(`x-forwarded- x-envoy- remote- x-remote-`),
		words:    strings.Fields(`ip clientip forwarded`)},
	routing,
	{why: "belongs to aileron",
		prefixes: strings.Fields(`aileron- x-aileron-`)},
}

var routing = reservation{why: "leads the request to another host, path, method or place",
	names: strings.Fields(`destination x-host x-http-method x-http-host x-real-host x-sendfile x-unix-socket x-url
		x-uri x-method x-verb`),
	prefixes: strings.Fields(`x-original- x-rewrite- x-accel- x-upstream- x-backend- x-middleware- x-arr-`),
	parts:    strings.Fields(`override unix-socket`)}

// MayReroute reports whether a server may take a request with the field for one of another host, path or method, or the
// field for another one: its name has other characters than letters, digits and dashes.
func MayReroute(name string) bool {
	folded := foldField(name)
	return folded != strings.ToLower(name) || routing.holds(folded)
}

// vendorReservations are fields in which the proxies of cloud providers name the
// sender of a request. Prefixes such as x-goog-* may be declared, but never
// cover them.
var vendorReservations = reservation{why: "is how a provider's own proxy names who sent the request",
	prefixes: strings.Fields(`x-goog-iap- x-ms-client-principal x-amzn-oidc- cf-access- x-appengine- x-consumer-
		x-authenticated-`)}

// ReservedAuditFields returns the names of fields that aileron records of a request itself. A connector that declared
// one could write in its place what an upstream says.
func ReservedAuditFields() []string { return slices.Clone(reservedAuditFields) }

var reservedAuditFields = strings.Fields(`
	request_id clock spilled redirected renewed dropped_headers dropped_headers_omitted packed body_fields
	action action_version surface step boundary approval_id upstream_status intent_id intent_seq sent not_known
	mcp_method mcp_tool graphql_type graphql_fields graphql_fields_omitted graphql_hash`)

// credentialWords are parts of the names of fields and subprotocols whose value
// authenticates a user or a client.
var credentialWords = strings.Fields(`token secret api-key apikey password passwd credential authorization cookie
	x-auth-`)

// NamesCredential reports whether a field or a subprotocol of that name holds a
// credential. Case is ignored.
func NamesCredential(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(lower, word) })
}

// reservedField returns why a connector cannot declare the field, or "" if it can.
func reservedField(name string) string {
	folded := foldField(name)
	for _, r := range reservations {
		if r.holds(folded) {
			return r.why
		}
	}
	if vendorReservations.holds(folded) {
		return vendorReservations.why
	}
	return ""
}

// reservedPrefix returns why a connector cannot declare the names that begin with
// a prefix, or "" if it can.
func reservedPrefix(prefix string) string {
	folded := foldField(prefix)
	begins := func(name string) bool { return strings.HasPrefix(name, folded) }
	for _, r := range reservations {
		if r.holds(folded) || r.holds(strings.TrimSuffix(folded, "-")) {
			return "cannot be declared: each such field " + r.why
		}
		for _, list := range [][]string{r.names, r.prefixes} {
			if i := slices.IndexFunc(list, begins); i >= 0 {
				return "is too wide a prefix: it covers " + strings.TrimSuffix(list[i], "-") + ", which " + r.why
			}
		}
	}
	return ""
}

// holds reports whether the group has the field.
func (r reservation) holds(folded string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(folded, prefix) }
	holds := func(part string) bool { return strings.Contains(folded, part) }
	isWord := func(word string) bool { return slices.Contains(r.words, word) }
	return slices.Contains(r.names, folded) || slices.ContainsFunc(r.prefixes, begins) ||
		slices.ContainsFunc(r.parts, holds) || slices.ContainsFunc(strings.Split(folded, "-"), isWord)
}

// foldField returns a field's name as the most lenient servers read it.
func foldField(name string) string {
	folded := []byte(strings.ToLower(name))
	for i, c := range folded {
		if !isAlnum(c) {
			folded[i] = '-'
		}
	}
	return string(folded)
}
