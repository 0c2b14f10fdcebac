package harness

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

// Whatever stands before a secret, its Basic form is found.
func TestEncodingsHaveABasicForm(t *testing.T) {
	const secret = "ghp-stand/in+SECRET0123456789"
	for _, user := range []string{"", "x", "me", "git", "x-access-token"} {
		for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			text := "Basic " + alphabet.EncodeToString([]byte(user+":"+secret))
			if !slices.ContainsFunc(encodings(secret), func(s string) bool { return strings.Contains(text, s) }) {
				t.Errorf("%s is not found", text)
			}
		}
	}
	if s := encodings(secret); slices.ContainsFunc(s, func(s string) bool { return len(s) < len(secret)-8 }) {
		t.Errorf("%q are too short to be of this secret alone", s)
	}
}
