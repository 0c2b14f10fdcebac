package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestTheReasonPhraseOfADenialIsOneShortPrintableLine(t *testing.T) {
	for message, want := range map[string]string{
		"no installed connector names it; allowed are a.example": "Forbidden (aileron: host_not_allowed: no installed " +
			"connector names it)",
		"the path /\r\nSet-Cookie: a=b/\x1b[2J/é is odd": "Forbidden (aileron: host_not_allowed: the path " +
			"/??Set-Cookie: a=b/?[2J/? is odd)",
	} {
		if got := ReasonHost.Deny("%s", message).phrase(); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
	long := ReasonHost.Deny("%s", strings.Repeat("long ", 100)).phrase()
	if len(long) != maxPhrase || !strings.HasSuffix(long, ")") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

// Clients of GraphQL print the message of its errors, and look for the cause in their extensions.
func TestADenialOfGraphQLIsAnErrorOfGraphQL(t *testing.T) {
	for reason, want := range map[Reason]string{ReasonContent: "forbidden", ReasonBudget: "ratelimited",
		ReasonMalformed: ""} {
		d := reason.Deny("why")
		if strings.Contains(string(d.JSON()), `"errors"`) {
			t.Errorf("%s: %s has errors", reason, d.JSON())
		}
		d.GraphQL = true
		var body struct {
			Error  struct{ Message string }
			Errors []struct {
				Message    string
				Extensions struct{ Code, Type string }
			}
		}
		must.Do(t, json.Unmarshal(d.JSON(), &body))
		if len(body.Errors) != 1 || body.Errors[0].Message != d.Text() || body.Error.Message != d.Text() ||
			body.Errors[0].Extensions.Code != string(reason) || body.Errors[0].Extensions.Type != want {
			t.Errorf("%s: %s", reason, d.JSON())
		}
	}
}
