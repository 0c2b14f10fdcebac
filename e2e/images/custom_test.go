package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// builtImage is the name of an image that a test's own files add to.
var builtImage = regexp.MustCompile(`localhost/aileron/(?:project|packages):[0-9a-f]{12}`)

// own runs a command in a box of aileron's own image with what is added to it,
// and removes that image at the end of the test, even if no command ran in it.
func (p *person) own(flags []string, script string) result {
	p.t.Helper()
	r := p.box("", flags, []string{"sh", "-c", script})
	for _, name := range builtImage.FindAllString(r.err, -1) {
		p.t.Cleanup(func() { _, _ = tool(p.engine, "rmi", name) })
	}
	return r
}

// dockerfile writes the project's Dockerfile.
func (p *person) dockerfile(lines ...string) {
	p.t.Helper()
	text := strings.Join(append([]string{"ARG BASE", "FROM ${BASE}"}, lines...), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(p.project, "aileron.Dockerfile"), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func TestPackagesAreAddedToTheImage(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		r := p.own([]string{"--packages", "tree,sl", "--packages", "tree"},
			"tree --version | cut -c1-4; command -v /usr/games/sl")
		if r.code != 0 || r.out != "tree\n/usr/games/sl\n" {
			t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		built := strings.Count(r.err, "building localhost/aileron/packages:")
		if r = p.own([]string{"--packages", "sl,tree"}, "tree --version >/dev/null"); r.code != 0 || built != 1 ||
			strings.Contains(r.err, "building") {
			t.Errorf("exit %d; it was built %d times, and then: %s", r.code, built, r.err)
		}
		r = p.box("", []string{"--packages", "no-such-package-of-debian"}, []string{"true"})
		if r.code != 1 || !strings.Contains(r.err, "Unable to locate package no-such-package-of-debian") ||
			!strings.Contains(r.err, "hint: ") {
			t.Errorf("a package that does not exist: exit %d\n%s", r.code, r.err)
		}
	})
}

// A repository may bring the file: nothing of it runs before a person agreed to
// these bytes.
func TestADockerfileIsBuiltOnlyAfterConsentToItsContent(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		p.dockerfile("USER root", "RUN echo "+t.Name()+" >/etc/added")
		refused := func(what string) {
			t.Helper()
			r := p.own(nil, "true")
			if r.code != 1 || strings.Contains(r.err, "building") || !strings.Contains(r.err, "a person must agree") ||
				!strings.Contains(r.err, "hint: ") {
				t.Errorf("%s: exit %d\n%s", what, r.code, r.err)
			}
		}
		refused("without consent")
		if r := p.own([]string{"--dockerfile=off"}, "cat /etc/added || echo none"); r.code != 0 || r.out != "none\n" {
			t.Errorf("without the Dockerfile: exit %d\n%s%s", r.code, r.out, r.err)
		}
		for _, flags := range [][]string{{"--yes"}, nil} {
			if r := p.own(flags, "cat /etc/added"); r.code != 0 || r.out != t.Name()+"\n" {
				t.Errorf("with consent, %q: exit %d\n%s%s", flags, r.code, r.out, r.err)
			}
		}
		p.dockerfile("USER root", "RUN echo changed "+t.Name()+" >/etc/added")
		refused("with consent to another content")
		if err := os.Remove(filepath.Join(p.project, "aileron.Dockerfile")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/shadow", filepath.Join(p.project, "aileron.Dockerfile")); err != nil {
			t.Fatal(err)
		}
		if r := p.own([]string{"--yes"}, "true"); r.code != 1 || !strings.Contains(r.err, "not a regular file") {
			t.Errorf("a link to another file: exit %d\n%s", r.code, r.err)
		}
	})
}

// Whatever a Dockerfile says of how its image runs, it runs as launch says.
func TestADockerfileCannotEndTheSeal(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		p.dockerfile(`ENTRYPOINT ["/bin/sh", "-c", "echo entrypoint; exec \"$@\"", "-"]`, `CMD ["echo", "command"]`,
			"ENV HTTPS_PROXY=http://192.0.2.1:1 https_proxy=http://192.0.2.1:1 NO_PROXY=* no_proxy=* "+
				"ALL_PROXY=http://192.0.2.1:1",
			"ENV AILERON_TOKEN=theirs AILERON_SESSION_ID=theirs GH_TOKEN=theirs CURL_CA_BUNDLE=/nowhere",
			"USER root", "RUN echo image-decided >/etc/aileron/tools.txt && ln -s /home /etc/aileron/elsewhere",
			"VOLUME /etc/aileron /var/lib/aileron", "WORKDIR /", "EXPOSE 80", "STOPSIGNAL SIGUSR1",
			"HEALTHCHECK --interval=1s CMD touch /tmp/healthcheck", "LABEL aileron.session=theirs aileron.role=gateway")
		r := p.own([]string{"--yes"}, `
			pwd; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
			ls /sys/class/net; echo "$HTTPS_PROXY $https_proxy"
			case $AILERON_TOKEN$AILERON_SESSION_ID in *theirs*) echo theirs ;; esac
			grep image-decided /etc/aileron/tools.txt
			curl -sS https://`+stub.GitHub+`/user | grep -c octo-stand-in
			curl -sS --noproxy '*' --max-time 20 -o /dev/null -w '%{http_code}\n' https://198.51.100.1/ 2>/dev/null
			[ ! -e /tmp/healthcheck ] || echo healthcheck`)
		want := "/home/agent/workspace\nCapBnd:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\nlo\n" +
			"http://127.0.0.1:3128 http://127.0.0.1:3128\n1\n"
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		got := strings.Join(lines[:max(0, len(lines)-1)], "\n") + "\n"
		for _, bad := range []string{"entrypoint", "command\n", "theirs", "image-decided", "healthcheck"} {
			if strings.Contains(r.out, bad) {
				t.Errorf("the image decides how it runs: %q", bad)
			}
		}
		if sorted(got) != sorted(want) {
			t.Errorf("exit %d, %q, want %q and the end of a denied request\n%s", r.code, got, want, r.err)
		}
		if n := len(p.rows("--decision", "rejected")); n == 0 {
			t.Error("the request past the proxy is not in the audit log")
		}
		// One that would lie over the project.
		p.dockerfile("VOLUME /home/agent/workspace/x")
		r = p.own([]string{"--yes"}, "true")
		if r.code != 1 || !strings.Contains(r.err, "its VOLUME /home/agent/workspace/x lies over it") {
			t.Errorf("a volume in the project: exit %d\n%s", r.code, r.err)
		}
	})
}

func TestADockerfileThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		last := "RUN true 3 of " + t.Name()
		p.dockerfile("USER root", "RUN true 1", "RUN true 2", last, "RUN echo the cause of "+t.Name()+" >&2; exit 7")
		t.Cleanup(func() { removeSteps(engine, strings.TrimPrefix(last, "RUN ")) })
		r := p.own([]string{"--yes"}, "true")
		if r.code != 1 || !strings.Contains(r.err, "the cause of "+t.Name()) || strings.Count(r.err, "hint: ") != 1 ||
			!strings.Contains(r.err, "exit status 7") && !strings.Contains(r.err, "code: 7") {
			t.Errorf("exit %d\n%s", r.code, r.err)
		}
		if n := len(p.rows("--event", "session.started")); n != 0 {
			t.Errorf("%d rows of a session that did not begin", n)
		}
		if out, _ := tool(engine, "image", "ls", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"); strings.Contains(r.err,
			"localhost/aileron/project:") && strings.Contains(string(out), projectRef(r.err)) {
			t.Errorf("an image is left: %s", out)
		}
	})
}

// removeSteps removes what the engine keeps of a failed build as its cache: the
// image after the step, and those below it.
func removeSteps(engine, step string) {
	out, _ := tool(engine, "image", "ls", "--filter", "dangling=true", "--filter", "label=aileron.image", "--format",
		"{{.ID}}")
	for id := range strings.FieldsSeq(string(out)) {
		if history, _ := tool(engine, "history", "--no-trunc", id); strings.Contains(string(history), step) {
			_, _ = tool(engine, "rmi", id)
		}
	}
}

// projectRef is the first name of a project's image in a text.
func projectRef(text string) string {
	at := strings.Index(text, "localhost/aileron/project:")
	return strings.TrimRight(strings.Fields(text[at:])[0], ":,")
}

// sorted are the lines of a text in order: engines list the fields of a process
// as their kernel does.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
