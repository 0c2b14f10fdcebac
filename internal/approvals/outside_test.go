package approvals

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

// What decides, or runs on the host, about an agent's requests does not lie where the agent may write.
func TestNoProgramLiesWhereASandboxWrites(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	project, mine := filepath.Join(root, "project"), filepath.Join(root, "mine")
	for _, dir := range []string{filepath.Join(project, "bin"), mine} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	for _, file := range []string{"project/bin/decide", "mine/decide", "project/by-name"} {
		must.Do(t, os.WriteFile(filepath.Join(root, file), []byte("#!/bin/sh\n"), 0o700))
	}
	// A link of the project leads to what is not in it, and the other way round.
	must.Do(t, os.Symlink(filepath.Join(mine, "decide"), filepath.Join(project, "to-mine")))
	must.Do(t, os.Symlink("../project/bin", filepath.Join(mine, "to-project")))
	must.Do(t, os.Symlink(filepath.Join(project, "to-mine"), filepath.Join(mine, "there-and-back")))
	t.Setenv("PATH", mine+":"+project+":/bin")
	for _, c := range []struct {
		name string
		p    Programs
		bad  bool
	}{
		{"none", Programs{}, false},
		{"another directory", Programs{Decider: []string{mine + "/decide", "main", "a=b"}}, false},
		{"a directory whose name begins so", Programs{Decider: []string{project + "s/decide"}}, false},
		{"a path that ends so", Programs{Decider: []string{mine + project + "/decide"}}, false},
		{"the project", Programs{Decider: []string{project + "/bin/decide"}}, true},
		{"a program that is not there yet", Programs{Decider: []string{project + "/bin/new"}}, true},
		{"its script", Programs{Decider: []string{"/bin/sh", project + "/bin/decide"}}, true},
		{"a flag", Programs{Decider: []string{"/bin/sh", "--rules=" + mine + "/to-project/decide"}}, true},
		{"a directory in a word of a shell", Programs{Notify: []string{"sh", "-c", "cd " + project + "; ./decide"}}, true},
		{"a flag without a sign", Programs{Decider: []string{"/bin/sh", "-I" + project + "/bin"}}, true},
		{"another one in a word of a shell", Programs{Notify: []string{"sh", "-c", "cd " + project + "-s; ./x"}}, false},
		{"a word of a shell", Programs{Notify: []string{"sh", "-c", "exec " + project + "/bin/decide"}}, true},
		{"by a link from elsewhere", Programs{Decider: []string{mine + "/to-project/decide"}}, true},
		{"by a link of the project", Programs{Decider: []string{project + "/to-mine"}}, true},
		{"by a link of the project on the way", Programs{Decider: []string{mine + "/there-and-back"}}, true},
		{"by dots", Programs{Decider: []string{mine + "/../project/./bin/decide"}}, true},
		{"a socket", Programs{Socket: project + "/decide.sock"}, true},
		{"another socket", Programs{Socket: mine + "/decide.sock"}, false},
		{"by the search of names", Programs{Notify: []string{"by-name"}}, true},
		{"by the search of names elsewhere", Programs{Notify: []string{"decide", "x"}}, false},
		{"what cannot be run", Programs{Notify: []string{"no-such-program"}}, false},
	} {
		err := c.p.CheckOutside([]string{filepath.Join(root, "other"), project})
		if (err != nil) != c.bad || c.bad && (!strings.Contains(err.Error(), "the sandbox may write to "+project) ||
			hint.Of(err) == "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
