// Package reserved knows the request fields that no connector may declare, as they change what the matched request
// means. Open [Field] first.
package reserved

import (
	"slices"
	"strings"
)

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
	folded := Fold(name)
	return folded != strings.ToLower(name) || routing.holds(folded)
}

// vendorReservations are fields in which the proxies of cloud providers name the
// sender of a request. Prefixes such as x-goog-* may be declared, but never
// cover them.
var vendorReservations = reservation{why: "is how a provider's own proxy names who sent the request",
	prefixes: strings.Fields(`x-goog-iap- x-ms-client-principal x-amzn-oidc- cf-access- x-appengine- x-consumer-
		x-authenticated-`)}

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

// Field returns why a connector cannot declare the field, or "" if it can.
func Field(name string) string {
	folded := Fold(name)
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

// Prefix returns why a connector cannot declare the names that begin with
// a prefix, or "" if it can.
func Prefix(prefix string) string {
	folded := Fold(prefix)
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

// Fold returns a field's name as the most lenient servers read it.
func Fold(name string) string {
	folded := []byte(strings.ToLower(name))
	for i, c := range folded {
		if !isAlnum(c) {
			folded[i] = '-'
		}
	}
	return string(folded)
}

// isAlnum reports whether c is an ASCII letter or digit.
func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
