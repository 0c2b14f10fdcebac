package config_test

import (
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestADeciderIsASocketOrACommandWithItsPath(t *testing.T) {
	c := must.Get(read(t, "[approval]\ndecider = \"unix:/run/d.sock\"\n"))(t)
	if d := c.Approval.Decider; d.Socket != "/run/d.sock" || d.Command != nil || !d.IsSet() {
		t.Errorf("the socket is %+v", d)
	}
	c = must.Get(read(t, "[approval]\ndecider = [\"/usr/bin/decide\", \"--strict\"]\n"))(t)
	if d := c.Approval.Decider; d.Socket != "" || !slices.Equal(d.Command, []string{"/usr/bin/decide", "--strict"}) ||
		!d.IsSet() {
		t.Errorf("the command is %+v", d)
	}
	if must.Get(read(t, "[approval]\nhold = \"1s\"\n"))(t).Approval.Decider.IsSet() {
		t.Error("there is a decider by default")
	}
	for _, value := range []string{`""`, `"true"`, `"/usr/bin/decide"`, `"unix:"`, `"unix:d.sock"`, `[]`, `[""]`,
		`["decide"]`, `["./decide"]`, `["/usr/bin/decide", 1]`, `["/usr/bin/decide\u0000x"]`, `true`,
		`{socket = "/x"}`, `[["/x"]]`} {
		check(t, "[approval]\ndecider = "+value+"\n", "approval.decider must be")
	}
}
