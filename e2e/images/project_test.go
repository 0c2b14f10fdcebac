package images

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// projectFile writes the project's file.
func (p *person) projectFile(text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.project, ".aileron.toml"), []byte(text), 0o644))
}

// started is the last row of a session that began.
type started struct {
	Fields struct {
		Mounts, Env, Ports []string
		Widens             []string `json:"project_widens"`
	}
}

// What a project's file asks for is shared with its sandbox after a person has agreed, and the audit log has its
// names.
func TestAProjectsFileSharesWithItsSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		data := filepath.Join(p.project, "data")
		must.Do(t, os.MkdirAll(filepath.Join(data, "read"), 0o777))
		port := harness.FreePort(t)
		p.projectFile(fmt.Sprintf("mounts = [\"data:/srv/data\", \"data/read:/srv/read:ro\"]\nports = [\"%d:8000\"]\n"+
			"[env]\nGREETING = \"hello from the file\"\n", port))
		const script = `echo "$GREETING"; echo made >/srv/data/made; touch /srv/read/x 2>/dev/null || echo read-only`
		run := func(flags ...string) result { return p.box("", flags, []string{"sh", "-c", script}) }

		r := run()
		asked := fmt.Sprintf("a person must agree to it first: mount %q", data)
		if r.code != 1 || r.out != "" || !strings.Contains(r.err, asked) ||
			!strings.Contains(r.err, "hint: ") || strings.Contains(r.err, "hello") {
			t.Errorf("without consent: exit %d, %q\n%s", r.code, r.out, r.err)
		}
		for _, flags := range [][]string{{"--trust-project"}, nil} {
			if r = run(flags...); r.code != 0 || r.out != "hello from the file\nread-only\n" ||
				!strings.Contains(r.err, fmt.Sprintf("127.0.0.1:%d is port 8000 of the sandbox", port)) {
				t.Errorf("%q: exit %d, %q\n%s", flags, r.code, r.out, r.err)
			}
		}
		if made, err := os.ReadFile(filepath.Join(data, "made")); string(made) != "made\n" {
			t.Errorf("the project has %q, %v", made, err)
		}
		rows := harness.Rows[started](t, p.must("audit", "list", "--json", "--limit", "0", "--event",
			"session.started").out)
		got := rows[0].Fields
		if len(rows) != 2 || !slices.Equal(got.Env, []string{"GREETING"}) ||
			!slices.Equal(got.Ports, []string{fmt.Sprintf("%d:8000", port)}) ||
			!slices.Equal(got.Mounts, []string{data + ":/srv/data", data + "/read:/srv/read:ro"}) || len(got.Widens) != 4 {
			t.Errorf("%d sessions began, with %+v", len(rows), got)
		}
		if out := p.must("audit", "list", "--json", "--limit", "0").out; strings.Contains(out, "hello from") {
			t.Error("the audit log has a variable's value")
		}
		r = run("--env", "GREETING=hello from a flag")
		if r.code != 0 || !strings.HasPrefix(r.out, "hello from a flag\n") ||
			!strings.Contains(r.err, "for: the variable GREETING\n") {
			t.Errorf("with a flag: exit %d, %q\n%s", r.code, r.out, r.err)
		}
		if r = p.box("", []string{"--ignore-project"}, []string{"sh", "-c", "ls /srv; echo $GREETING"}); r.out != "\n" {
			t.Errorf("--ignore-project: exit %d, %q\n%s", r.code, r.out, r.err)
		}
	})
}

// Whatever a repository has in its file, nothing of it is in a sandbox that a person would not have there.
func TestAProjectsFileThatGivesTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		for name, to := range map[string]string{"home": p.home, "root": "/", "out": filepath.Dir(p.home)} {
			must.Do(t, os.Symlink(to, filepath.Join(p.project, name)))
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		for text, want := range map[string]string{
			"mounts = [\"home:/x\"]":                      "it has the vault",
			"mounts = [\"root:/x\"]":                      "is refused",
			"mounts = [\"out:/x\"]":                       "it has the vault",
			"mounts = [\"../h/vault:/x\"]":                "it has the vault",
			"mounts = [\"/usr:/x:ro\"]":                   "is not in the project",
			"mounts = [\".:/x\"]":                         "git's hooks",
			"[env]\nTOKEN = \"" + secret + "\"":           "holds the secret of the binding",
			"[env]\nhttps_proxy = \"http://192.0.2.1:1\"": "the session sets it",
			fmt.Sprintf("ports = [\"%d:80\"]", port):      "it is in use",
		} {
			p.projectFile(text + "\n")
			r := p.box("", []string{"--trust-project"}, []string{"echo", "ran"})
			if r.code != 1 || r.out != "" || !strings.Contains(r.err, want) || strings.Count(r.err, "hint: ") != 1 ||
				strings.Contains(r.err, secret[:16]) {
				t.Errorf("%.40q: exit %d, %q, want %q\n%s", text, r.code, r.out, want, r.err)
			}
		}
		if n := len(p.rows("--event", "session.started")); n != 0 {
			t.Errorf("%d sessions began", n)
		}
	})
}

// What sandbox build and check print of an image is what a session runs, which builds nothing any more.
func TestAProjectsImageIsTheSameWithoutASession(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		p.dockerfile("USER root", "RUN echo "+t.Name()+" >/etc/added", "ENV GREETING=hello")
		p.projectFile("dockerfile = \"aileron.Dockerfile\"\nallow = [\"docs.example\"]\n")
		verb := func(flags []string, words ...string) result {
			return p.run(nil, append(append(words, "--sandbox="+engine, "--dir", p.project), flags...)...)
		}
		if r := verb(nil, "sandbox", "build", "--if-missing"); r.code != 1 || !strings.Contains(r.err, "must agree") {
			t.Errorf("a build without consent: exit %d\n%s", r.code, r.err)
		}
		built := verb([]string{"--trust-project", "--yes"}, "sandbox", "build", "--if-missing")
		ref := strings.TrimSpace(built.out)
		if built.code != 0 || !builtImage.MatchString(ref) {
			t.Fatalf("sandbox build: exit %d, %q\n%s", built.code, built.out, built.err)
		}
		t.Cleanup(func() { _, _ = tool(engine, "rmi", ref) })
		checked := verb(nil, "sandbox", "check", "--agent=sh")
		if checked.code != 0 || !strings.Contains(checked.out, "image: "+ref+"\n") ||
			strings.Contains(checked.err, "building") {
			t.Errorf("sandbox check: exit %d\n%s%s", checked.code, checked.out, checked.err)
		}
		// allow is new, and the image is not.
		r := p.own(nil, "true")
		if r.code != 1 || !strings.Contains(r.err, "must agree to it first: allow requests to docs.example, without") {
			t.Errorf("a session without consent to the rest: exit %d\n%s", r.code, r.err)
		}
		r = p.own([]string{"--trust-project"}, `cat /etc/added; echo "$AILERON_SANDBOX_IMAGE $GREETING"`)
		if r.code != 0 || r.out != t.Name()+"\n"+ref+" hello\n" || strings.Contains(r.err, "building") {
			t.Errorf("a session: exit %d, %q\n%s", r.code, r.out, r.err)
		}
	})
}
