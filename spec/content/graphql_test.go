package content_test

import (
	"testing"

	"github.com/ALRubinger/aileron/spec/content"
)

func TestIntrospectionHasToBeNamed(t *testing.T) {
	g := &content.GraphQL{Type: "query", Fields: []string{"*", "__type", "_x*"}}
	for field, want := range map[string]bool{"viewer": true, "_entities": true, "__typename": true, "__type": true,
		"__schema": false, "__types": false} {
		if got := g.AllowsField("query", field); got != want {
			t.Errorf("%s: %v, want %v", field, got, want)
		}
		if g.AllowsField("mutation", field) {
			t.Errorf("%s: a mutation may have it", field)
		}
	}
}
