package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// What the kernel kills for its memory is named, with the key that raises the
// limit, on stderr and in the row of the session's end.
func TestABoxThatRunsOutOfMemorySaysSo(t *testing.T) {
	engines(t, func(t *testing.T, u *user) {
		if err := os.WriteFile(filepath.Join(u.home, "config.toml"), []byte("[sandbox]\nmemory = \"32m\"\ncpus = 1\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		for script, c := range map[string]struct {
			code int
			want string
		}{
			until("go") + "exec tail /dev/zero": {137,
				"out of memory: the kernel killed the command: the sandbox reached its limit of 32 MiB; raise [sandbox] memory " +
					"in config.toml"},
			until("go") + "tail /dev/zero; sleep 5; :": {0,
				"out of memory: the kernel killed a process of the sandbox: the sandbox reached its limit of 32 MiB; raise " +
					"[sandbox] memory in config.toml"},
			"exit 5": {5, ""},
		} {
			r := u.begin(u.boxArgs(marked(script))...)
			if c.want != "" {
				r.hasBegun()
				// What happens before a box is looked at for the first time is not seen.
				harness.WaitFor(t, "aileron looks at the box", func() bool { return r.holds(r.box) })
				u.say("go")
			}
			res := r.end()
			_ = os.Remove(filepath.Join(u.project, "up"))
			_ = os.Remove(filepath.Join(u.project, "go"))
			if strings.Contains(res.err, "not enforced") && os.Geteuid() != 0 {
				t.Skip("this machine does not enforce the limit: " + res.err)
			}
			if res.code != c.code || c.want != "" != strings.Contains(res.err, "aileron: "+c.want+"\n") {
				t.Errorf("%s: exit %d with %q, want %d and %q", script, res.code, res.err, c.code, c.want)
			}
			if said := r.errs.String(); !strings.Contains(said,
				"aileron: the sandbox may use 32 MiB of memory, without swap, and 1 CPUs") {
				t.Errorf("%s: the limits are not named at the start: %q", script, said)
			}
			rows := u.rows("--event", "session.ended")
			fields, _ := rows[len(rows)-1]["fields"].(map[string]any)
			if cause := fmt.Sprint(fields["cause"]); strings.Contains(cause, "out of memory") != (c.want != "") ||
				!strings.Contains(cause, c.want) {
				t.Errorf("%s: session.ended has the cause %q, want %q in it", script, cause, c.want)
			}
		}
	})
}

// holds reports whether aileron has a pidfd of a process: with that it looks at what the process runs out of.
func (r *running) holds(p process) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", r.cmd.Process.Pid))
	return slices.ContainsFunc(files, func(file string) bool {
		info, _ := os.ReadFile(file)
		return strings.Contains(string(info), fmt.Sprintf("\nPid:\t%d\n", p.pid))
	})
}
