package spec

import (
	"slices"
	"strings"
)

// Placeholder is an environment variable with a harmless value, for a tool that
// does not start without a credential.
type Placeholder struct{ Env, Value string }

func (c *Connector) readPlaceholders(top node) {
	seen := map[string]bool{}
	for i, v := range top.list("placeholders", false, maxItems) {
		n, ok := top.diags.open(v, top.item("placeholders", i), "env", "value")
		if !ok {
			continue
		}
		p := Placeholder{Env: n.text("env", true), Value: n.text("value", true)}
		switch why := badPlaceholder(p.Env); {
		case p.Env == "":
		case why != "":
			n.diags.add(n.at("env"), "%q %s", p.Env, why)
		case seen[p.Env]:
			n.diags.add(n.at("env"), "%q appears twice", p.Env)
		}
		if len(p.Value) > 256 || !isPlainValue(p.Value) {
			n.diags.add(n.at("value"), "it is not at most 256 letters, digits and any of . _ - + = : @ / ~")
		}
		seen[p.Env] = true
		c.Placeholders = append(c.Placeholders, p)
	}
}

// isPlainValue reports whether shells, loaders and parsers read s as one word.
func isPlainValue(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte("._-+=:@/~", c) < 0 {
			return false
		}
	}
	return true
}

// placeholderSuffixes are the ends of the names that a connector may set: those of
// a credential or its owner.
var placeholderSuffixes = strings.Fields("_TOKEN _KEY _SECRET _PASSWORD _ID _USER _ACCOUNT")

// reservedVariables are prefixes of names that steer a sandbox, a loader, a
// shell, or a client's proxy and trust. They are refused whatever their end:
// GIT_ASKPASS_TOKEN or SSH_KEY may become meaningful in a program's next
// release. Package managers are not among them, as they expect a credential in
// NODE_AUTH_TOKEN and CARGO_REGISTRY_TOKEN.
var reservedVariables = strings.Fields(`
	AILERON LD_ DYLD_ GIT_ SSL_ TLS_ BASH PYTHON JAVA_TOOL JDK_ _JAVA NPM_CONFIG CURL_ REQUESTS_ OPENSSL_ GODEBUG GCONV_
	GLIBC_ MALLOC_ LC_ XDG_ HTTP_ HTTPS_ FTP_ ALL_PROXY NO_PROXY PROXY_ SUDO_ SSH_ GPG_ PROMPT`)

// badPlaceholder returns why a connector cannot set the variable, or "" if it can.
func badPlaceholder(s string) string {
	begins := func(p string) bool { return strings.HasPrefix(s, p) }
	ends := func(p string) bool { return strings.HasSuffix(s, p) && len(s) > len(p) }
	switch {
	case !isName(s, "_") || strings.ToUpper(s) != s || s[0] <= '9':
		return "is not a variable's name in upper case"
	case slices.ContainsFunc(reservedVariables, begins):
		return "is not a variable that a connector may set: names that begin like this steer programs"
	case !slices.ContainsFunc(placeholderSuffixes, ends):
		return "is not a variable that a connector may set: its name must end in " + strings.Join(placeholderSuffixes, ", ")
	}
	return ""
}
