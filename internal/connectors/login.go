package connectors

import (
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/spec"
)

// OAuth2JSON is how the access token of a connector is obtained.
type OAuth2JSON struct {
	Grant        string            `json:"grant"`
	AuthorizeURL string            `json:"authorize_url,omitempty"`
	TokenURL     string            `json:"token_url"`
	TokenHost    string            `json:"token_host"`
	DeviceURL    string            `json:"device_authorization_url,omitempty"`
	RevokeURL    string            `json:"revoke_url,omitempty"`
	ClientID     string            `json:"client_id"` // "": the user brings a client
	ClientSecret bool              `json:"client_secret"`
	Scopes       []string          `json:"scopes"`
	AuthParams   map[string]string `json:"auth_params,omitempty"`
}

func describeLogin(o *spec.OAuth2) *OAuth2JSON {
	if o == nil {
		return nil
	}
	return &OAuth2JSON{Grant: o.Grant, AuthorizeURL: o.AuthorizeURL, TokenURL: o.TokenURL, TokenHost: tokenHost(o),
		DeviceURL: o.DeviceURL, RevokeURL: o.RevokeURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret != "",
		Scopes: append([]string{}, o.Scopes...), AuthParams: o.AuthParams}
}

// tokenHost returns the host that issues the tokens, as "host:port".
func tokenHost(o *spec.OAuth2) string {
	for _, h := range o.AskedHosts() {
		return h.String()
	}
	return ""
}

// fact is a line of what a connector grants.
type fact struct{ name, text string }

// loginFacts returns how the credential of a connector is obtained, in the lines of what it grants; none if it does not
// say so. Each value is of plain ASCII without line breaks, but for those of the parameters.
func loginFacts(c *spec.Connector) []fact {
	need := c.Credential()
	if need == nil || need.OAuth2 == nil {
		return nil
	}
	o := need.OAuth2
	facts := []fact{{"login", "in a browser, at " + o.AuthorizeURL}, {"client", o.ClientID + ", of the publisher"}}
	switch o.Grant {
	case logins.GrantDevice:
		facts[0].text = "with a code in a browser, from " + o.DeviceURL
	case logins.GrantClient:
		facts[0].text = "none: a client has an id and a secret"
	}
	if o.ClientID == "" {
		facts[1].text = "your own: the connector has none"
	}
	for _, s := range o.Scopes {
		facts = append(facts, fact{"scope", s})
	}
	facts = append(facts, fact{"tokens from", o.TokenURL})
	if o.RevokeURL != "" {
		facts = append(facts, fact{"revoked at", o.RevokeURL})
	}
	for _, name := range slices.Sorted(maps.Keys(o.AuthParams)) {
		facts = append(facts, fact{"parameter", name + "=" + strings.Join(strings.Fields(o.AuthParams[name]), " ")})
	}
	return facts
}

// printLogin prints in what the logins of two versions differ.
func (d *changesPrinter) printLogin(old, c *spec.Connector) {
	was, is := loginFacts(old), loginFacts(c)
	for _, f := range is {
		if !slices.Contains(was, f) {
			d.line("grants more, "+f.name, f.text)
		}
	}
	for _, f := range was {
		if !slices.Contains(is, f) {
			d.line("no longer grants, "+f.name, f.text)
		}
	}
	if a, b := clientSecret(old), clientSecret(c); a != b {
		d.line("another client secret", "the publisher's client has another one, or none")
	}
}

// clientSecret returns what is compared of two versions, and never printed.
func clientSecret(c *spec.Connector) string {
	if need := c.Credential(); need != nil && need.OAuth2 != nil {
		return need.OAuth2.ClientSecret
	}
	return ""
}
