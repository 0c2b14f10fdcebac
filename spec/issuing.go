package spec

import (
	"slices"
	"strings"
)

// MayIssueCredentials reports whether, by the words in its path and its name, responses of o may have credentials that
// the session did not hold before: access tokens, keys, passwords. Redaction cannot know those, so who installs o
// must. The words are a publisher's: an operation without them, or with any path, may issue credentials all the same.
func (o *Operation) MayIssueCredentials() bool {
	if o.Injection == nil || o.Method == "DELETE" || o.Method == "HEAD" {
		return false
	}
	words := append(strings.Split(o.Name, "."), o.Name)
	for _, s := range o.Path.Segments() {
		words = append(words, s.Literal, s.After)
	}
	if slices.Contains(words, "serviceAccounts") && slices.Contains(words, "keys") {
		return o.Method != "GET"
	}
	reads := o.Method == "GET"
	return slices.ContainsFunc(words, func(word string) bool { return isOfCredentials(word, reads) })
}

// isOfCredentials reports whether a word names what issues credentials, in any of the usual ways to write it:
// access_tokens, access-tokens, accessTokens, projects:generateAccessToken. With GET, lists have names as a rule, so
// reads leaves plurals out.
func isOfCredentials(word string, reads bool) bool {
	word = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(word))
	if reads {
		return slices.Contains([]string{"token", "accesstoken", "idtoken", "credential", "credentials", "secret", "password"},
			word)
	}
	if slices.Contains([]string{"token", "tokens", "credential", "credentials", "secret", "jwt", "password", "passwords",
		"assumerole"}, word) {
		return true
	}
	return slices.ContainsFunc([]string{"accesstoken", "refreshtoken", "apitoken", "deploytoken", "registrationtoken",
		"removetoken", "idtoken", "createtoken", "issuetoken", "newtoken", "rotatetoken", "apikey", "accesskey", "privatekey",
		"clientsecret", "jitconfig"},
		func(part string) bool { return strings.Contains(word, part) })
}
