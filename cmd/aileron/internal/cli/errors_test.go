package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
)

func TestAHintHasItsOwnLineOnATerminalAlone(t *testing.T) {
	f := failure.Describe(hint.New(errors.New("open the vault:\nit is not initialised"), "aileron vault init"))
	for terminal, want := range map[bool]string{
		false: "aileron: open the vault: it is not initialised; hint: aileron vault init\n",
		true:  "aileron: open the vault: it is not initialised\nhint: aileron vault init\n",
	} {
		var out strings.Builder
		printFailure(f, &out, terminal, 0)
		if out.String() != want {
			t.Errorf("terminal %v: %q, want %q", terminal, out.String(), want)
		}
	}
}
