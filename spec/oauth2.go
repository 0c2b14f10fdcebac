package spec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
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

// rawOAuth2 is the table as it is written.
type rawOAuth2 struct {
	Grant        string   `toml:"grant"`
	AuthorizeURL string   `toml:"authorize_url"`
	TokenURL     string   `toml:"token_url"`
	DeviceURL    string   `toml:"device_authorization_url"`
	RevokeURL    string   `toml:"revoke_url"`
	ClientID     string   `toml:"client_id"`
	ClientSecret string   `toml:"client_secret"`
	Scopes       []string `toml:"scopes"`
	AuthParams   any      `toml:"auth_params"` // the decoder takes any value for an empty map
}

// oauth2Key is the key of the table.
var oauth2Key = toml.Key{"capabilities", "credential", "oauth2"}

// isAuthParam reports whether a key is an entry of auth_params, whose names are the service's.
func isAuthParam(key toml.Key) bool {
	return len(key) == 5 && slices.Equal(key[:3], oauth2Key) && key[3] == "auth_params"
}

// oauth2 returns the table of a credential, nil if there is none.
func (r *manifestReader) oauth2(raw *rawOAuth2, kind Kind, hosts []HostPattern) *OAuth2 {
	if raw == nil {
		return nil
	}
	if kind != KindOAuth2 {
		r.add(oauth2Key, "the table is for kind = \"oauth2\", and the kind is %q", kind)
	}
	o := OAuth2{cmp.Or(raw.Grant, GrantCode), raw.AuthorizeURL, raw.TokenURL, raw.DeviceURL, raw.RevokeURL, raw.ClientID,
		raw.ClientSecret, raw.Scopes, nil}
	add := func(key, format string, args ...any) {
		name, entry, isEntry := strings.Cut(key, "[")
		if isEntry {
			entry = "[" + entry
		}
		r.diags.add(place(r.data, append(slices.Clone(oauth2Key), name))+entry, format, args...)
	}
	var ok bool
	if o.AuthParams, ok = textValues(raw.AuthParams); !ok {
		add("auth_params", "it is not a table of strings")
	}
	o.check(hosts, add)
	if o.ClientSecret != "" && !bytes.Contains(r.data, []byte(o.ClientSecret)) {
		add("client_secret", "write it without escapes") // see Connector.Documents
	}
	return &o
}

// TOML returns the table as a manifest has it.
func (o *OAuth2) TOML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", oauth2Key)
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

// textValues returns a table of strings. It reports false if v is something else.
func textValues(v any) (map[string]string, bool) {
	table, ok := v.(map[string]any)
	values := make(map[string]string, len(table))
	for name, value := range table {
		text, isText := value.(string)
		values[name], ok = text, ok && isText
	}
	return values, ok || v == nil
}

// Check returns an error unless o is a table that a manifest with these hosts may have.
func (o *OAuth2) Check(hosts []HostPattern) error {
	var d diagnostics
	o.check(hosts, d.add)
	return d.err()
}

// check records every mistake with its key.
func (o *OAuth2) check(hosts []HostPattern, add func(key, format string, args ...any)) {
	if !slices.Contains(Grants(), o.Grant) {
		add("grant", "%q is not %s", o.Grant, either(Grants()))
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
		case u.asked && !slices.Contains(hosts, host):
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
	if len(o.ClientID) > maxClient || !isVisible(o.ClientID) {
		add("client_id", "it is not at most %d characters of plain ASCII without spaces", maxClient)
	}
	switch {
	case o.ClientSecret == "":
	case o.Grant == GrantClient:
		add("client_secret", "with grant = %q it is a credential, which the user binds: remove it", GrantClient)
	case o.ClientID == "":
		add("client_secret", "it belongs to a client, and there is no client_id")
	case len(o.ClientSecret) < minSecret || len(o.ClientSecret) > maxClient || !isVisible(o.ClientSecret) ||
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
		case s == "" || len(s) > maxScope || !isVisible(s) || strings.ContainsAny(s, `"\`): // RFC 6749 section 3.3
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
		case !isName(name, "._-"):
			add("auth_params", "%q is not letters, digits, dots, dashes and underscores", name)
		case slices.Contains(reservedAuthParams, strings.ToLower(name)):
			add("auth_params", "%q is a parameter that aileron sets or that is never sent", name)
		case value == "" || len(value) > maxAuthParam || hasControl(value):
			add("auth_params", "the value of %q is not 1 to %d bytes without control characters", name, maxAuthParam)
		}
	}
}

// isVisible reports whether s is printable ASCII without spaces.
func isVisible(s string) bool { return isPrintable(s) && !strings.Contains(s, " ") }

// endpoint returns the host of an https URL that a manifest may have: a host that a connector may name, no user, no
// fragment (RFC 6749 section 3.1), a path in the one spelling that paths of operations have, and no parameter that is
// aileron's.
func endpoint(text string) (HostPattern, error) {
	if len(text) > maxURL || !isVisible(text) || strings.ContainsAny(text, "\\\"") {
		return HostPattern{}, fmt.Errorf("it is not a URL of at most %d characters of plain ASCII", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return HostPattern{}, errors.New("it is not a URL")
	case u.Scheme != "https" || !strings.HasPrefix(text, "https://"):
		return HostPattern{}, fmt.Errorf("%q does not begin with https://", text)
	case u.User != nil:
		return HostPattern{}, errors.New("it has a user before the host")
	case strings.Contains(text, "#"):
		return HostPattern{}, errors.New("it has a fragment")
	}
	if _, err := ParseTemplate(pathOf(u)); err != nil {
		return HostPattern{}, fmt.Errorf("its path is not plain: %w", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return HostPattern{}, errors.New("its query cannot be read")
	}
	for name := range query {
		if slices.Contains(reservedAuthParams, strings.ToLower(name)) {
			return HostPattern{}, fmt.Errorf("its query has %q, which aileron sets or which is never sent", name)
		}
	}
	host, err := declaredHost(u.Host)
	if err == nil && (host.Wildcard || strings.Contains(host.Name, "_")) {
		err = fmt.Errorf("%q is not one host that has a certificate", u.Host)
	}
	return host, err
}

// pathOf returns the path of a request to a URL.
func pathOf(u *url.URL) string { return cmp.Or(u.EscapedPath(), "/") }

// asked is a URL that aileron itself asks.
type asked struct {
	key, url, path string
	host           HostPattern
}

// asked returns those of the URLs that are valid.
func (o *OAuth2) asked() []asked {
	var all []asked
	for _, a := range []asked{{key: "token_url", url: o.TokenURL}, {key: "device_authorization_url", url: o.DeviceURL},
		{key: "revoke_url", url: o.RevokeURL}} {
		var err error
		if a.host, err = endpoint(a.url); err != nil {
			continue
		}
		if u, err := url.Parse(a.url); err == nil {
			a.path = pathOf(u)
			all = append(all, a)
		}
	}
	return all
}

// AskedHosts returns the hosts that aileron itself asks for tokens, each once: they are among those of the manifest.
func (o *OAuth2) AskedHosts() []HostPattern {
	var hosts []HostPattern
	for _, a := range o.asked() {
		if !slices.Contains(hosts, a.host) {
			hosts = append(hosts, a.host)
		}
	}
	return hosts
}

// CheckOperation returns an error if a request of op, with the credential, can be one for tokens. The credential is for
// the service; with it, what issues or revokes tokens is for aileron alone.
func (o *OAuth2) CheckOperation(op *Operation) error {
	if op.Injection == nil {
		return nil
	}
	for _, a := range o.asked() {
		if op.reaches(a.host, a.path) {
			return fmt.Errorf("%q can be a request to %s, %s, which only aileron may ask with this credential: declare "+
				"another path or the values of its variables, or no credential", op.Name, a.key, a.url)
		}
	}
	return nil
}

// reaches reports whether op has requests whose path is this one for a server, one that reads escaped slashes included.
// The query does not count.
func (op *Operation) reaches(host HostPattern, path string) bool {
	if !slices.ContainsFunc(op.Hosts, func(h HostPattern) bool { return h.Covers(host.Name, host.Port) }) {
		return false
	}
	parts := appendSegments(nil, path)
	ends := make([]bool, len(parts)+1) // where the segments so far may end
	ends[0] = true
	for _, s := range op.Path.segments {
		next := make([]bool, len(ends))
		for from := range parts {
			for to := from + 1; ends[from] && to < len(ends) && (to == from+1 || s.rest || s.slash); to++ {
				next[to] = next[to] || op.takes(s, parts[from:to])
			}
		}
		ends = next
	}
	return ends[len(parts)]
}

// takes reports whether a segment of the path may be these, with escaped slashes between.
func (op *Operation) takes(s segment, parts []string) bool {
	if s.name == "" {
		return s.literal == parts[0]
	}
	for _, in := range op.limited {
		if in.In == InPath && in.Name == s.name {
			return in.accepts(strings.Join(parts, "%2F"))
		}
	}
	return true
}

// CheckLogin returns an error if m asks for an oauth2 credential and does not declare how one is obtained, which is
// what a connector must declare that is installed or packed. One installed before goes on with an access token.
func (m *Manifest) CheckLogin() error {
	if c := m.Credential; c == nil || c.Kind != KindOAuth2 || c.OAuth2 != nil {
		return nil
	}
	d := newDiagnostic(strings.Join(oauth2Key[:2], ".")+".kind", "an oauth2 credential needs the table [%s] with "+
		"authorize_url, token_url and scopes; for a token that the user has at hand, declare kind = \"bearer\" in both files",
		oauth2Key)
	d.File = ManifestFile
	return d
}
