package session

import (
	"strings"
	"testing"
)

func TestAHostThatAConnectorDecidesIsNotAllowedAsItIs(t *testing.T) {
	opts := newOptions(t)
	install(t, opts.Home)
	opts.Allow = []string{"api.github.com"}
	if s, err := Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "an installed connector names it") {
		if err == nil {
			s.Abandon(t.Context())
		}
		t.Errorf("got %v, want a refusal that names the connector", err)
	}
	opts.Allow = []string{"docs.example"}
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon(t.Context())
	if all := s.Connectors(); len(all) != 2 || !all[1].FQN.IsLocal() {
		t.Errorf("the connectors of the session: %v", all)
	}
}
