package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/template"
	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/BurntSushi/toml"
)

// OAuth2 is [logins.OAuth2].
type OAuth2 = logins.OAuth2

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
	o := OAuth2{Grant: cmp.Or(raw.Grant, logins.GrantCode), AuthorizeURL: raw.AuthorizeURL, TokenURL: raw.TokenURL,
		DeviceURL: raw.DeviceURL, RevokeURL: raw.RevokeURL, ClientID: raw.ClientID, ClientSecret: raw.ClientSecret,
		Scopes: raw.Scopes}
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
	o.Faults(hosts, add)
	if o.ClientSecret != "" && !bytes.Contains(r.data, []byte(o.ClientSecret)) {
		add("client_secret", "write it without escapes") // see Connector.Documents
	}
	return &o
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

// CheckLogin returns an error if a request of op, with the credential, can be one for tokens of o. The credential is
// for the service; with it, what issues or revokes tokens is for aileron alone.
func (op *Operation) CheckLogin(o *OAuth2) error {
	if op.Injection == nil {
		return nil
	}
	for _, a := range o.Asked() {
		if op.reaches(a.Host, a.Path) {
			return fmt.Errorf("%q can be a request to %s, %s, which only aileron may ask with this credential: declare "+
				"another path or the values of its variables, or no credential", op.Name, a.Key, a.URL)
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
	parts := template.AppendSegments(nil, path)
	ends := make([]bool, len(parts)+1) // where the segments so far may end
	ends[0] = true
	for i, s := range op.Path.Segments() {
		if op.Path.HasOptionalSlash() && i == len(op.Path.Segments())-1 && ends[len(parts)] {
			return true
		}
		next := make([]bool, len(ends))
		for from := range parts {
			for to := from + 1; ends[from] && to < len(ends) && (to == from+1 || s.Rest || s.Slash); to++ {
				next[to] = next[to] || op.takes(s, parts[from:to])
			}
		}
		ends = next
	}
	return ends[len(parts)]
}

// takes reports whether a segment of the path may be these, with escaped slashes between.
func (op *Operation) takes(s template.Segment, parts []string) bool {
	if s.Name == "" {
		return s.Literal == parts[0]
	}
	value := strings.Join(parts, "%2F")
	if !s.IsAlone() {
		var ok bool
		if value, ok = s.Affix().Value(value); !ok {
			return false
		}
	}
	for _, in := range op.limited {
		if in.In == InPath && in.Name == s.Name {
			return in.accepts(value)
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
