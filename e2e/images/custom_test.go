package images

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// builtImage is the name of an image that a test's own files add to.
var builtImage = regexp.MustCompile(`localhost/aileron/(?:project|packages):[0-9a-f]{12,64}`)

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
	must.Do(p.t, os.WriteFile(filepath.Join(p.project, "aileron.Dockerfile"), []byte(text), 0o644))
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
		if r.code != 1 || !strings.Contains(lastLines(r.err, 2),
			"; its error: E: Unable to locate package no-such-package-of-debian") || !strings.Contains(r.err, "hint: ") {
			t.Errorf("a package that does not exist: exit %d\n%s", r.code, r.err)
		}
		p.leftNothing(r.err)
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
		for i, flags := range [][]string{{"--yes"}, nil} { // the second one builds nothing
			r := p.own(flags, "cat /etc/added")
			if r.code != 0 || r.out != t.Name()+"\n" || strings.Count(r.err, "building") != 1-i {
				t.Errorf("with consent, %q: exit %d\n%s%s", flags, r.code, r.out, r.err)
			}
		}
		p.dockerfile("USER root", "RUN echo changed "+t.Name()+" >/etc/added")
		refused("with consent to another content")
		must.Do(t, os.Remove(filepath.Join(p.project, "aileron.Dockerfile")))
		must.Do(t, os.Symlink("/etc/shadow", filepath.Join(p.project, "aileron.Dockerfile")))
		if r := p.own([]string{"--yes"}, "true"); r.code != 1 || !strings.Contains(r.err, "it is a symbolic link") {
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
		want := p.project + "\nCapBnd:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\nlo\n" +
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
		p.dockerfile("USER root", "RUN true 1 of "+p.mark(), "RUN true 2", "RUN true 3",
			"RUN echo the cause of "+t.Name()+" >&2; exit 7", "RUN true")
		r := p.own([]string{"--yes"}, "true")
		end := lastLines(r.err, 2)
		// Docker counts ARG too.
		step := map[string]string{"podman": ": step 6/8: ", "docker": ": step 7/9: "}[engine]
		for _, want := range []string{step, "; its last line: the cause of " + t.Name(),
			"hint: correct the Dockerfile, or start without it: --dockerfile=off"} {
			if r.code != 1 || !strings.Contains(end, want) {
				t.Errorf("exit %d, without %q\n%s", r.code, want, r.err)
			}
		}
		if !strings.Contains(end, "exit status 7") && !strings.Contains(end, "code: 7") ||
			strings.Count(r.err, "hint: ") != 1 {
			t.Errorf("exit %d\n%s", r.code, r.err)
		}
		if n := len(p.rows("--event", "session.started")); n != 0 {
			t.Errorf("%d rows of a session that did not begin", n)
		}
		p.leftNothing(r.err)
	})
}

// Podman goes on with the build of a client that went away, and would leave the
// container of each step. The exit code is that of a program that the signal ended.
func TestABuildThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			end  syscall.Signal
			args []string
		}{
			{syscall.SIGINT, []string{"build", "--if-missing"}}, {syscall.SIGTERM, []string{"build", "--if-missing"}},
			{syscall.SIGINT, []string{"check", "--agent=sh"}}, {syscall.SIGHUP, []string{"check", "--agent=sh"}},
		} {
			t.Run(fmt.Sprint(c.args[0], " ", c.end), func(t *testing.T) { newPerson(t, engine).interrupts(c.end, c.args...) })
		}
	})
}

// Two builds that begin with the same step leave nothing of it, whichever ends first.
func TestBuildsThatShareAStepLeaveNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		first, second := newPerson(t, engine), newPerson(t, engine)
		shared := "RUN true 1 of " + first.mark()
		first.dockerfile(shared, "RUN echo begun; sleep 600; true")
		second.dockerfile(shared, "RUN echo begun; sleep 601; true")
		args := []string{"build", "--if-missing"}
		one := first.builds(args...)
		two := second.builds(args...) // with the step that the first one made
		printed := one(syscall.SIGINT)
		first.leftNothing(printed + two(syscall.SIGINT))
	})
}

// interrupts sends a signal to a command of sandbox while it builds the project's image.
func (p *person) interrupts(end syscall.Signal, args ...string) {
	p.t.Helper()
	p.dockerfile("USER root", "RUN true 1 of "+p.mark(), "RUN echo begun; sleep 600; true", "RUN sleep 601")
	p.leftNothing(p.builds(args...)(end))
}

// builds starts a command of sandbox, which builds the project's image, and returns when a step of that has said
// "begun". What it returns sends the command a signal, waits for it, and returns what it printed.
func (p *person) builds(args ...string) (interrupt func(syscall.Signal) string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), harness.Patience)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, slices.Concat([]string{"sandbox"}, args,
		[]string{"--sandbox=" + p.engine, "--dir", p.project, "--yes"})...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+p.home)
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var printed strings.Builder
	lines := bufio.NewScanner(errs)
	for begun := false; !begun && lines.Scan(); {
		fmt.Fprintln(&printed, lines.Text())
		begun = lines.Text() == "begun"
	}
	return func(end syscall.Signal) string {
		p.t.Helper()
		_ = cmd.Process.Signal(end)
		for lines.Scan() {
			fmt.Fprintln(&printed, lines.Text())
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 128+int(end) || !strings.Contains(printed.String(), "begun\n") ||
			!strings.HasSuffix(printed.String(), "aileron: interrupted\n") {
			p.t.Errorf("exit %d\n%s", code, printed.String())
		}
		return printed.String()
	}
}

// mark is a text that is in no other build, of this run of the tests or another.
func (p *person) mark() string { return p.t.Name() + " in " + filepath.Dir(p.home) }

// lastLines are the last lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// leftNothing demands that no image has a step with the test's name, that the
// image that was to be built is not there, and that no container is left of an
// image that is gone. Other tests build at the same time.
func (p *person) leftNothing(printed string) {
	p.t.Helper()
	images := p.list("image", "ls", "-a", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}")
	for _, ref := range builtImage.FindAllString(printed, -1) {
		if strings.Contains(images, ref) {
			p.t.Errorf("the image %s is left", ref)
		}
	}
	labelled := p.list("image", "ls", "-a", "-q", "--filter", "label=aileron.image")
	for id, history := range p.histories(strings.Fields(labelled)) {
		if strings.Contains(history, p.mark()) {
			p.t.Errorf("the image %s is left:\n%s", id, history)
			_, _ = tool(p.engine, "rmi", id)
		}
	}
	flags := []string{"ps", "-a", "--format", "{{.Names}} {{.Image}}"}
	if p.engine == "podman" {
		flags = append(flags, "--external")
	}
	for line := range strings.Lines(p.list(flags...)) {
		if own := firstStep.FindStringSubmatch(printed); own != nil && strings.HasPrefix(line, own[1]) {
			p.t.Errorf("a container is left: %s", line)
		}
	}
}

// list returns what the engine prints, which fails while another test removes an image that is to be listed.
func (p *person) list(args ...string) (printed string) {
	p.t.Helper()
	harness.WaitFor(p.t, "the engine's list", func() bool {
		out, err := tool(p.engine, args...)
		printed = string(out)
		return err == nil
	})
	return printed
}

// histories returns what images were made by. Podman tells it of all at once.
func (p *person) histories(ids []string) map[string]string {
	of := map[string]string{}
	if p.engine == "podman" {
		const format = "{{.ID}}\t{{range .History}}{{printf \"%q \" .CreatedBy}}{{end}}"
		out, _ := tool(p.engine, append([]string{"image", "inspect", "--format", format}, ids...)...)
		for line := range strings.Lines(string(out)) {
			if id, history, ok := strings.Cut(line, "\t"); ok {
				of[id] = history
			}
		}
		if len(of) > 0 { // unless one of them is removed meanwhile
			return of
		}
	}
	for _, id := range ids {
		history, _ := tool(p.engine, "history", "--no-trunc", id)
		of[id] = string(history)
	}
	return of
}

// firstStep is the image of a build's first step that has its test's name.
// Podman's container of the next step has its name.
var firstStep = regexp.MustCompile(`RUN true 1 of [^\n]*\n--> ([0-9a-f]{11})`)

// sorted are the lines of a text in order: engines list the fields of a process
// as their kernel does.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
