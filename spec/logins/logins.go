// Package logins reads what a manifest declares about obtaining the access token of an oauth2 credential.
package logins

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/hosts"
	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// OAuth2 is how the access token of a connector's oauth2 credential is obtained, in the
// table [capabilities.credential.oauth2] of the manifest.
type OAuth2 struct {
	Grant        string // one of Grants
	AuthorizeURL string // where a person logs in; required by GrantCode
	TokenURL     string
	DeviceURL    string // RFC 8628 section 3.1; only of GrantDevice
	RevokeURL    string // RFC 7009; "": the service has none
	ClientID     string // the publisher's client; "": the user brings one
	ClientSecret string // what a distributed client has (RFC 8252 section 8.5), not a secret; see PlaceholderSecret
	Scopes       []string
	AuthParams   map[string]string // fixed parameters of the authorization request
}

// The grants by which a connector obtains tokens.
const (
	GrantCode   = "authorization_code" // the default
	GrantDevice = "device_code"
	GrantClient = "client_credentials"
)

// Grants returns every grant.
func Grants() []string { return []string{GrantCode, GrantDevice, GrantClient} }

// Table is the key of the table.
const Table = "capabilities.credential.oauth2"

// PlaceholderSecret is the client_secret that a publisher's repository has in place of the
// value that the release has.
const PlaceholderSecret = "bound-at-release"

// reservedAuthParams are parameters that aileron sets itself, or that would change where the
// code goes, what is asked for, or in which form it is asked (RFC 6749, RFC 7636, RFC 9101).
var reservedAuthParams = strings.Fields(`
	client_assertion client_assertion_type client_id client_secret code code_challenge code_challenge_method
	code_verifier device_code dpop_jkt grant_type nonce redirect_uri refresh_token request request_uri resource_owner
	response_mode response_type scope state`)

// The bounds of the table.
const (
	maxURL        = 2048
	maxClient     = 512
	minSecret     = 8
	maxScopes     = 64
	maxScope      = 256
	maxAuthParams = 16
	maxAuthParam  = 1024
)

// TOML returns the table as a manifest has it.
func (o *OAuth2) TOML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", Table)
	for _, e := range []struct{ key, value string }{{"grant", o.Grant}, {"authorize_url", o.AuthorizeURL},
		{"token_url", o.TokenURL}, {"device_authorization_url", o.DeviceURL}, {"revoke_url", o.RevokeURL},
		{"client_id", o.ClientID}, {"client_secret", o.ClientSecret}} {
		if e.value != "" {
			fmt.Fprintf(&b, "%s = %q\n", e.key, e.value)
		}
	}
	b.WriteString("scopes = [")
	for _, scope := range o.Scopes {
		fmt.Fprintf(&b, "%q, ", scope)
	}
	b.WriteString("]\nauth_params = {")
	for i, name := range slices.Sorted(maps.Keys(o.AuthParams)) {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %q = %q", name, o.AuthParams[name])
	}
	b.WriteString(" }\n")
	return b.String()
}

// Check returns an error unless o is a table that a manifest with these hosts may have.
func (o *OAuth2) Check(allowed []hosts.Pattern) error {
	var faults []error
	o.Faults(allowed, func(key, format string, args ...any) {
		faults = append(faults, fmt.Errorf(key+": "+format, args...))
	})
	return errors.Join(faults...)
}

// Faults calls add for every mistake, with its key.
func (o *OAuth2) Faults(allowed []hosts.Pattern, add func(key, format string, args ...any)) {
	if !slices.Contains(Grants(), o.Grant) {
		add("grant", "%q is not %s", o.Grant, plain.Either(Grants()))
	}
	for _, u := range []struct {
		key, value string
		needed     bool
		asked      bool // by aileron, not by a browser
	}{
		{"authorize_url", o.AuthorizeURL, o.Grant == GrantCode, false},
		{"token_url", o.TokenURL, true, true},
		{"device_authorization_url", o.DeviceURL, o.Grant == GrantDevice, true},
		{"revoke_url", o.RevokeURL, false, true},
	} {
		host, err := endpoint(u.value)
		switch {
		case u.value == "" && u.needed:
			add(u.key, "it is missing, and grant = %q needs it", o.Grant)
		case u.value == "":
		case err != nil:
			add(u.key, "%v", err)
		case u.asked && !slices.Contains(allowed, host):
			add(u.key, "its host %s is not among capabilities.network.hosts: add it", host)
		}
	}
	if o.DeviceURL != "" && o.Grant != GrantDevice {
		add("device_authorization_url", "it is for grant = %q, and the grant is %q", GrantDevice, o.Grant)
	}
	o.checkClient(add)
	o.checkScopes(add)
	o.checkAuthParams(add)
}

func (o *OAuth2) checkClient(add func(key, format string, args ...any)) {
	if len(o.ClientID) > maxClient || !plain.IsVisible(o.ClientID) {
		add("client_id", "it is not at most %d characters of plain ASCII without spaces", maxClient)
	}
	switch {
	case o.ClientSecret == "":
	case o.Grant == GrantClient:
		add("client_secret", "with grant = %q it is a credential, which the user binds: remove it", GrantClient)
	case o.ClientID == "":
		add("client_secret", "it belongs to a client, and there is no client_id")
	case len(o.ClientSecret) < minSecret || len(o.ClientSecret) > maxClient || !plain.IsVisible(o.ClientSecret) ||
		strings.ContainsAny(o.ClientSecret, `"'\`):
		add("client_secret", "it is not %d to %d characters of plain ASCII without spaces, quotes and backslashes",
			minSecret, maxClient)
	}
}

func (o *OAuth2) checkScopes(add func(key, format string, args ...any)) {
	if len(o.Scopes) > maxScopes {
		add("scopes", "it has more than %d entries", maxScopes)
		return
	}
	for i, s := range o.Scopes {
		at := fmt.Sprintf("scopes[%d]", i)
		switch {
		case strings.Contains(s, " "):
			add(at, "%q has a space: write each scope as an entry of its own", s)
		case s == "" || len(s) > maxScope || !plain.IsVisible(s) || strings.ContainsAny(s, `"\`): // RFC 6749 section 3.3
			add(at, "it is not 1 to %d characters of plain ASCII without quotes and backslashes", maxScope)
		case slices.Contains(o.Scopes[:i], s):
			add(at, "%q appears twice", s)
		}
	}
}

func (o *OAuth2) checkAuthParams(add func(key, format string, args ...any)) {
	if len(o.AuthParams) > 0 && o.Grant == GrantClient {
		add("auth_params", "grant = %q has no authorization request", GrantClient)
	}
	if len(o.AuthParams) > maxAuthParams {
		add("auth_params", "it has more than %d entries", maxAuthParams)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o.AuthParams)) {
		switch value := o.AuthParams[name]; {
		case !plain.IsName(name, "._-"):
			add("auth_params", "%q is not letters, digits, dots, dashes and underscores", name)
		case slices.Contains(reservedAuthParams, strings.ToLower(name)):
			add("auth_params", "%q is a parameter that aileron sets or that is never sent", name)
		case value == "" || len(value) > maxAuthParam || plain.HasControl(value):
			add("auth_params", "the value of %q is not 1 to %d bytes without control characters", name, maxAuthParam)
		}
	}
}

// endpoint returns the host of an https URL that a manifest may have: a host that a connector may name, no user, no
// fragment (RFC 6749 section 3.1), a path in the one spelling that paths of operations have, and no parameter that is
// aileron's.
func endpoint(text string) (hosts.Pattern, error) {
	if len(text) > maxURL || !plain.IsVisible(text) || strings.ContainsAny(text, "\\\"") {
		return hosts.Pattern{}, fmt.Errorf("it is not a URL of at most %d characters of plain ASCII", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return hosts.Pattern{}, errors.New("it is not a URL")
	case u.Scheme != "https" || !strings.HasPrefix(text, "https://"):
		return hosts.Pattern{}, fmt.Errorf("%q does not begin with https://", text)
	case u.User != nil:
		return hosts.Pattern{}, errors.New("it has a user before the host")
	case strings.Contains(text, "#"):
		return hosts.Pattern{}, errors.New("it has a fragment")
	}
	for i, part := range strings.Split(pathOf(u)[1:], "/") {
		if part == "" && i < strings.Count(pathOf(u), "/")-1 || part == "." || part == ".." || !plain.IsSegment(part) {
			return hosts.Pattern{}, fmt.Errorf("its path is not plain: the segment %q is not plain", part)
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return hosts.Pattern{}, errors.New("its query cannot be read")
	}
	for name := range query {
		if slices.Contains(reservedAuthParams, strings.ToLower(name)) {
			return hosts.Pattern{}, fmt.Errorf("its query has %q, which aileron sets or which is never sent", name)
		}
	}
	host, err := hosts.ParseDeclared(u.Host)
	if err == nil && (host.Wildcard || strings.Contains(host.Name, "_")) {
		err = fmt.Errorf("%q is not one host that has a certificate", u.Host)
	}
	return host, err
}

// pathOf returns the path of a request to a URL.
func pathOf(u *url.URL) string { return cmp.Or(u.EscapedPath(), "/") }

// Asked is a URL that aileron itself asks, by its key in the table.
type Asked struct {
	Key, URL, Path string
	Host           hosts.Pattern
}

// Asked returns those of the URLs that are valid.
func (o *OAuth2) Asked() []Asked {
	var all []Asked
	for _, a := range []Asked{{Key: "token_url", URL: o.TokenURL}, {Key: "device_authorization_url", URL: o.DeviceURL},
		{Key: "revoke_url", URL: o.RevokeURL}} {
		var err error
		if a.Host, err = endpoint(a.URL); err != nil {
			continue
		}
		if u, err := url.Parse(a.URL); err == nil {
			a.Path = pathOf(u)
			all = append(all, a)
		}
	}
	return all
}

// AskedHosts returns the hosts that aileron itself asks for tokens, each once: they are among those of the manifest.
func (o *OAuth2) AskedHosts() []hosts.Pattern {
	var all []hosts.Pattern
	for _, a := range o.Asked() {
		if !slices.Contains(all, a.Host) {
			all = append(all, a.Host)
		}
	}
	return all
}
