package matrix

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

const pushBytes = 100_000_000

// git is github.com: repositories of the host's own git, over its smart HTTP.
type gitSite struct {
	root string
	cgi.Handler
}

func (o *origin) newGit(t *testing.T) *gitSite {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("there is no git: scripts/prepare installs it")
	}
	g := &gitSite{root: t.TempDir()}
	// No configuration of this machine, and nothing that wants to be clever
	// with what nothing compresses.
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(g.root, "config"),
		"GIT_PROJECT_ROOT=" + g.root, "GIT_HTTP_EXPORT_ALL=1"}
	config := "[core]\n\tcompression = 0\n\tbigFileThreshold = 1m\n[pack]\n\tcompression = 0\n[http]\n\treceivepack = " +
		"true\n[user]\n\tname = matrix\n\temail = matrix@example.com\n[safe]\n\tdirectory = *\n[gc]\n\tauto = " +
		"0\n[init]\n\tdefaultBranch = main\n"
	must.Do(t, os.WriteFile(filepath.Join(g.root, "config"), []byte(config), 0o600))
	g.Handler = cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: env, Stderr: os.Stderr}
	for _, size := range sizes {
		work := t.TempDir()
		for name, data := range map[string][]byte{"blob.bin": o.blob(size), "later.bin": o.blob("small")} {
			must.Do(t, os.WriteFile(filepath.Join(work, name), data, 0o600))
		}
		bare := filepath.Join(g.root, "acme", size+".git")
		script := `set -e; git init -q; git add blob.bin; git commit -qm one
			git checkout -qb later; git add later.bin; git commit -qm two; git checkout -q main
			git clone -q --bare . "$1"; git init -q --bare "$2"`
		g.run(t, work, "sh", "-c", script, "-", bare, filepath.Join(g.root, "acme", "push.git"))
	}
	return g
}

func (g *gitSite) run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), g.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func (g *gitSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.TransferEncoding = nil // net/http/cgi refuses what git http-backend takes: it reads to the end
	g.Handler.ServeHTTP(w, r)
}

// pushed is the file that a client has pushed to the mode's branch, as it
// arrived: the driver reports what it sent.
func (g *gitSite) pushed(t *testing.T, mode string) wanted {
	t.Helper()
	cmd := exec.Command("git", "-C", filepath.Join(g.root, "acme", "push.git"), "cat-file", "blob", mode+":blob.bin")
	cmd.Env = append(os.Environ(), g.Env...)
	data, err := cmd.Output()
	if err != nil {
		return wanted{bytes: pushBytes}
	}
	return wantOf(data, "")
}
