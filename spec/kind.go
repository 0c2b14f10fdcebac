package spec

import (
	"encoding/base64"
	"slices"
)

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
	scheme   string // in Authorization, unless the connector declares a format
	username bool   // the binding has a username, and the value stands in a header
	login    bool   // the secret is the result of a login, not a thing that a person has at hand

	// compose returns what replaces {secret}; nil: the secret itself.
	compose func(username, secret string) string
}

// kinds has a row for each kind, in the order in which messages list them. A
// new kind is a constant and a row here, and its line in docs/connectors.md;
// one with a username is also named in vault's Binding.Check.
var kinds = []kindRow{
	{kind: KindOAuth2, scheme: "Bearer", login: true},
	{kind: KindAPIKey, scheme: "Bearer"},
	{kind: KindBearer, scheme: "Bearer"},
	{kind: KindBasic, scheme: "Basic", username: true, compose: basicCredentials},
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
