package e2e

import (
	"bytes"
	"os/exec"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// plane is a running aileron proxy.
type plane struct {
	harness.Ready
	cmd *exec.Cmd
}

// serve starts aileron proxy; it is ended with the test.
func (u *user) serve(flags ...string) *plane {
	u.t.Helper()
	p := &plane{cmd: u.command(append(append([]string{"proxy", "--json"}, u.reach()...), flags...)...)}
	var errs bytes.Buffer
	p.cmd.Stderr = &errs
	var err error
	if p.Ready, err = harness.StartProxy(p.cmd); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			if err := harness.EndProxy(p.cmd); err != nil {
				u.t.Error(err)
			}
		}
		if strings.Contains(errs.String(), secret[:16]) {
			u.t.Errorf("the secret is in what proxy says: %s", errs.String())
		}
	})
	return p
}
