package setup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/agents"
)

// keyForm is what the keys of a connector of the catalogue look like.
type keyForm struct {
	connector string
	what      string   // for the question
	or        string   // another kind of key that the question is answered with
	prefixes  []string // one of which a key has
	not       []string // prefixes of other providers that begin like one of these
}

// keyForms returns the known forms of keys. A provider may invent new ones, so a key that has none is warned of and
// accepted.
func keyForms() []keyForm {
	return []keyForm{
		{connector: "anthropic", what: "Anthropic API key", or: "the token that claude setup-token prints",
			prefixes: []string{"sk-ant-"}, not: []string{"sk-ant-oat"}},
		{connector: "anthropic-oauth", what: "token of claude setup-token", prefixes: []string{"sk-ant-oat"}},
		{connector: "openai", what: "OpenAI API key", prefixes: []string{"sk-"}, not: []string{"sk-ant-", "sk-or-"}},
		{connector: "openrouter", what: "OpenRouter API key", prefixes: []string{"sk-or-"}},
		{connector: "gemini", what: "Google Gemini API key", prefixes: []string{"AIza", "AQ."}},
		{connector: "github", what: "GitHub token",
			prefixes: []string{"ghp_", "github_pat_", "gho_", "ghu_", "ghs_"}},
	}
}

func keyFormOf(connector string) keyForm {
	for _, f := range keyForms() {
		if f.connector == connector {
			return f
		}
	}
	return keyForm{connector: connector, what: "key of " + connector}
}

// fits reports whether a key has the form.
func (f keyForm) fits(key string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return len(f.prefixes) == 0 || slices.ContainsFunc(f.prefixes, begins) && !slices.ContainsFunc(f.not, begins)
}

// doubt returns why a key may be the wrong one, and "" if nothing says so. It has no byte of the key that is not of a
// known prefix.
func (f keyForm) doubt(key string) string {
	if f.fits(key) {
		return ""
	}
	text := fmt.Sprintf("does not begin with %s, as every %s does", strings.Join(f.prefixes, " or "), f.what)
	for _, other := range keyForms() {
		if other.connector != f.connector && other.fits(key) {
			return text + ", but like the " + other.what
		}
	}
	return text
}

// providerOf returns which of the agent's connectors a key is for: the one whose form it has, else the preferred one.
func providerOf(agent agents.Agent, preferred, key string) string {
	for _, name := range agent.Connectors {
		if needsKey(name) && keyFormOf(name).fits(key) && sameHost(preferred, name) {
			return name
		}
	}
	return preferred
}

// sameHost reports whether two connectors of the catalogue are for one provider, whose keys are told apart by their
// form: a person who is asked for a key of Anthropic's may paste either kind.
func sameHost(a, b string) bool {
	return a == b || strings.TrimSuffix(a, "-oauth") == strings.TrimSuffix(b, "-oauth")
}
