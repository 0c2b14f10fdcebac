package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// What the kernel kills for its memory is named, with the key that raises the
// limit, on stderr and in the row of the session's end.
func TestABoxThatRunsOutOfMemorySaysSo(t *testing.T) {
	engines(t, func(t *testing.T, u *user) {
		must.Do(t, os.WriteFile(filepath.Join(u.home, "config.toml"), []byte("[sandbox]\nmemory = \"32m\"\ncpus = 1\n"),
			0o600))
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
			r, res := u.withLittleMemory(script, c.want != "")
			// The kernel may take the shell too, before the memory of the first is free; and on a busy machine a box may end
			// before it is looked at again, which happens each second.
			for try := 1; try < 5 && c.want != "" && (res.code != c.code || !strings.Contains(res.err, c.want)); try++ {
				r, res = u.withLittleMemory(script, true)
			}
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

// withLittleMemory runs a script in a box to its end, which may wait for the file go before it runs out of memory.
func (u *user) withLittleMemory(script string, runsOut bool) (*running, result) {
	u.t.Helper()
	r := u.begin(u.boxArgs(marked(script))...)
	if runsOut {
		r.hasBegun()
		// What happens before a box is looked at for the first time is not seen.
		harness.WaitFor(u.t, "aileron looks at the box", func() bool { return r.holds(r.box) })
		u.say("go")
	}
	res := r.end()
	_ = os.Remove(filepath.Join(u.project, "up"))
	_ = os.Remove(filepath.Join(u.project, "go"))
	return r, res
}

// holds reports whether aileron has a pidfd of a process: with that it looks at what the process runs out of.
func (r *running) holds(p process) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", r.cmd.Process.Pid))
	return slices.ContainsFunc(files, func(file string) bool {
		info, _ := os.ReadFile(file)
		return strings.Contains(string(info), fmt.Sprintf("\nPid:\t%d\n", p.pid))
	})
}
