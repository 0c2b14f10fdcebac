package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/spec"
)

// worktree returns a directory with a repository and a worktree of it, as git worktree add makes them.
func worktree(t *testing.T) (project, common string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, common = filepath.Join(root, "wt"), filepath.Join(root, "main", ".git")
	own := filepath.Join(common, "worktrees", "wt")
	for _, dir := range []string{project, own, filepath.Join(common, "objects"), filepath.Join(common, "refs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(common, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(project, ".git"), "gitdir: "+own+"\n")
	write(t, filepath.Join(own, "gitdir"), filepath.Join(project, ".git")+"\n")
	return project, common
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnIdentityIsReadByGitAsItIs(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git: ", err)
	}
	for _, name := range []string{"Ada", `A "quoted" \ name; # no comment`, "  spaces  ", "é ü", "[core] x = y"} {
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, string(gitFile(name+"\x1b\n[core]\n", "a@example.org", "").Data))
		out, err := exec.Command(git, "config", "--file", file, "--get", "user.name").CombinedOutput()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != name+"[core]" {
			t.Errorf("git reads %q, %v, want %q", got, err, name+"[core]")
		}
	}
	if text := string(gitFile("", "", "").Data); strings.Contains(text, "[user]") {
		t.Errorf("without an identity: %s", text)
	}
}

// Of the host's settings those of the user alone are asked.
func TestTheHostsIdentityIsTheUsers(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	home, project := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), "[user]\nname = Ada\nemail = ada@example.org\n")
	for _, dir := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(project, ".git", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(project, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(project, ".git", "config"), "[user]\nname = Mallory\n")
	l := &Launcher{Environ: []string{"HOME=" + home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name",
		"GIT_CONFIG_VALUE_0=Mallory", "PATH=" + os.Getenv("PATH")}}
	if name, email := l.gitIdentity(t.Context(), project); name != "Ada" || email != "ada@example.org" {
		t.Errorf("gitIdentity = %q, %q", name, email)
	}
	l.Environ = []string{"HOME=" + t.TempDir()}
	if name, email := l.gitIdentity(t.Context(), project); name != "" || email != "" {
		t.Errorf("gitIdentity of a user without one = %q, %q", name, email)
	}
}

// linked returns a sandbox of the project that is prepared at its own path, or with place "" at the common one alone.
func linked(t *testing.T, project, place string) (b *sandboxed, said *strings.Builder) {
	t.Helper()
	said = &strings.Builder{}
	l := &Launcher{Home: t.TempDir(), Infof: func(form string, args ...any) { fmt.Fprintf(said, form+"\n", args...) }}
	b = &sandboxed{Launcher: l, dir: project, prepared: &sandbox.Prepared{Place: place}}
	b.linkRepository(t.Context())
	return b, said
}

// A mount of the file would be resolved by the engine, when another sandbox may have put a link in its place.
func TestTheGitFileOfAWorktreeIsCopied(t *testing.T) {
	project, common := worktree(t)
	b, said := linked(t, project, "")
	if len(b.mounts) != 1 || b.mounts[0].Source != common || !slices.Equal(b.gitDirs, []string{common}) {
		t.Errorf("the mounts: %+v, want %s alone (%s)", b.mounts, common, said)
	}
	files := b.worktreeLinks()
	if len(files) != 1 || files[0].Path != filepath.Join(project, ".git") || string(files[0].Data) !=
		"gitdir: "+filepath.Join(common, "worktrees", "wt")+"\n" {
		t.Errorf("the files: %+v", files)
	}
	if b, _ := linked(t, project, project); len(b.worktreeLinks()) != 0 {
		t.Errorf("beside the project itself: %+v", b.worktreeLinks())
	}
}

// addWorktree adds another worktree to the repository, which names the path of its .git.
func addWorktree(t *testing.T, common, name, link string) string {
	t.Helper()
	admin := filepath.Join(common, "worktrees", name)
	must.Do(t, os.MkdirAll(admin, 0o700))
	write(t, filepath.Join(admin, "gitdir"), link+"\n")
	return admin
}

func TestOtherWorktreesAreReadOnlyAndNotTakenForRemovedOnes(t *testing.T) {
	project, common := worktree(t)
	gone := addWorktree(t, common, "gone", "/srv/src/gone/.git")
	b, _ := linked(t, project, project)
	got, want := b.held(), []sandbox.Cover{
		{Source: filepath.Join(common, "worktrees"), Path: filepath.Join(common, "worktrees"), Held: true},
		{Source: gone, Path: gone, Own: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("it covers %+v, want %+v", got, want)
	}
	if files := b.worktreeLinks(); len(files) != 1 || files[0].Path != "/srv/src/gone/.git" ||
		string(files[0].Data) != "gitdir: "+gone+"\n" {
		t.Errorf("the files: %+v", files)
	}
	main := filepath.Dir(common) // its own .git is held, too
	b, _ = linked(t, main, main)
	if got := b.held(); len(got) != 4 || got[0] != (sandbox.Cover{Source: common, Path: ".git", Held: true}) ||
		got[2] != (sandbox.Cover{Source: gone, Path: ".git/worktrees/gone", Own: true}) {
		t.Errorf("the main worktree covers %+v", got)
	}
}

// What a sandbox wrote into the directory of a worktree must not put a file anywhere else.
func TestAHostileWorktreeHasNoFileInTheSandbox(t *testing.T) {
	project, common := worktree(t)
	for i, link := range []string{project + "/x/.git", "/etc/.git", "/usr/lib/x/.git", "/.git", "/proc/self/x/.git",
		sandbox.Workspace + "/x/.git", "/srv/data/x/.git", "/a\x1b[31m/.git", ""} {
		addWorktree(t, common, fmt.Sprint("w", i), link)
	}
	b, _ := linked(t, project, project)
	b.mounts = append(b.mounts, engine.Mount{Source: "/x", Target: "/srv/data"})
	for _, f := range b.worktreeLinks() {
		if !strings.HasPrefix(f.Path, common) { // "" is the worktree's own directory
			t.Errorf("it puts %q", f.Path)
		}
	}
}

func TestManyWorktreesAreOneMount(t *testing.T) {
	project, common := worktree(t)
	for i := range 200 {
		addWorktree(t, common, fmt.Sprint("w", i), fmt.Sprintf("/srv/src/w%d/.git", i))
	}
	b, said := linked(t, project, project)
	worktrees, own := filepath.Join(common, "worktrees"), filepath.Join(common, "worktrees", "wt")
	if got := b.held(); !slices.Equal(got, []sandbox.Cover{
		{Source: worktrees, Path: worktrees, Own: true}, {Source: own, Path: own, Held: true}}) {
		t.Errorf("it covers %+v", got)
	}
	if !strings.Contains(said.String(), "200 other worktrees") || len(b.worktreeLinks()) != 200 {
		t.Errorf("it says %q, and puts %d files", said, len(b.worktreeLinks()))
	}
}

func TestSettingsOfTheHostDoNotStopACommit(t *testing.T) {
	b, said := linked(t, t.TempDir(), "")
	facts := gitFacts{name: "Ada", email: "ada@example.org", own: gitlayout.Settings{"commit.gpgsign": {"true"},
		"core.hookspath": {"/home/ada/hooks"}, "user.name": {"Own"}, "http.proxy": {"http://corp.example:8080"},
		"http.https://a.example/?x=y.proxy": {"http://corp.example:8080"}, "remote.origin.proxy": {"x"},
		"http.proxyx": {"x"}}}
	b.reportGit(facts)
	for _, want := range []string{"knows you as Own <ada@example.org>, as the project's own configuration says",
		"not signed", "core.hooksPath is /home/ada/hooks"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q: %s", want, said)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	dir := t.TempDir()
	must.Do(t, exec.Command("git", "init", "-q", dir).Run())
	write(t, filepath.Join(dir, ".git", "config"), "[commit]\ngpgSign = true\n[http]\nproxy = corp\n[remote \"origin\"]\n"+
		"proxy = corp\n[http \"https://a.example/?x=y\"]\nproxy = corp\n")
	for _, c := range []struct{ args, want string }{
		{"--type=bool commit.gpgSign", "false"}, {"http.proxy", "http://session:1"},
		{"remote.origin.proxy", "http://session:1"}, {"--get-urlmatch http.proxy https://a.example/?x=y", "http://session:1"},
	} {
		cmd := exec.Command("git", append([]string{"-C", dir, "config"}, strings.Fields(c.args)...)...)
		cmd.Env = append(os.Environ(), gitVariables(facts, "http://session:1")...)
		if out, err := cmd.CombinedOutput(); strings.TrimSpace(string(out)) != c.want {
			t.Errorf("git config %s: %q, %v; want %q", c.args, out, err, c.want)
		}
	}
}

// A remote of SSH, and a rule of the repository that makes HTTPS into SSH, are HTTPS where a connector has the host. A
// rule that leads to a mirror wins.
func TestSSHIsRewrittenWhereAConnectorHasTheHost(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git: ", err)
	}
	connector := &spec.Connector{}
	for _, path := range []string{"/{owner}/{repo}/info/refs", "/api"} {
		template := must.Get(spec.ParseTemplate(path))(t)
		host := spec.HostPattern{Name: map[string]string{"/api": "api.test"}[path], Port: 443}
		if host.Name == "" {
			host.Name = "github.com"
		}
		connector.Tools = append(connector.Tools,
			spec.Tool{Operations: []*spec.Operation{{Path: template, Hosts: []spec.HostPattern{host}}}})
	}
	hosts := gitHosts([]*spec.Connector{connector})
	if !slices.Equal(hosts, []string{"github.com"}) {
		t.Fatalf("the hosts of repositories: %q", hosts)
	}
	dir := t.TempDir()
	system := filepath.Join(dir, "system")
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Env = append([]string{"GIT_CONFIG_SYSTEM=" + system, "HOME=" + dir, "PATH=" + os.Getenv("PATH")},
			gitVariables(gitFacts{}, "http://session:1")...)
		for i, pair := range cmd.Env {
			cmd.Env[i] = strings.Replace(pair, "="+gitHTTPSFile, "="+filepath.Join(dir, "https"), 1)
		}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q")
	for _, c := range []struct{ name, rule, from, remote, want string }{
		{"", "", "", "git@github.com:", "https://github.com/"},
		{"", "", "", "github.com:", "https://github.com/"},
		{"", "", "", "ssh://git@github.com/", "https://github.com/"},
		{"", "", "", "ssh://github.com/", "https://github.com/"},
		{"", "", "", "ssh://git@github.com:22/", "https://github.com/"},
		{"", "", "", "git://github.com/", "https://github.com/"},
		{"", "", "", "https://github.com/", "https://github.com/"},
		{"SSH on the port of HTTPS", "", "", "ssh://git@ssh.github.com:443/", "https://github.com/"},
		{"an old scheme", "", "", "git+ssh://git@github.com/", "https://github.com/"},
		{"an organisation's user", "", "", "org-123@github.com:", "https://github.com/"},
		{"another host", "", "", "git@other.test:", "git@other.test:"},
		{"another host whose name begins as GitLab's", "", "", "git@altgithub.com:", "git@altgithub.com:"},
		{"a path that has a colon", "", "", "./x:", "./x:"},
		{"SSH for HTTPS", "git@github.com:", "https://github.com/", "https://github.com/", "https://github.com/"},
		{"SSH for all", "ssh://git@", "https://", "https://github.com/", "https://github.com/"},
		{"SSH for an owner", "git@github.com:acme/", "https://github.com/acme/", "https://github.com/",
			"https://github.com/"},
		{"a short name", "ssh://git@github.com/", "gh:", "gh:", "https://github.com/"},
		{"a mirror", "https://mirror.test/gh/", "https://github.com/", "https://github.com/", "https://mirror.test/gh/"},
		{"a mirror for SSH", "https://mirror.test/gh/", "git@github.com:", "git@github.com:", "https://mirror.test/gh/"},
		{"a local mirror", "/srv/gh/", "https://github.com/", "https://github.com/", "/srv/gh/"},
		{"another host's SSH", "git@other.test:", "https://other.test/", "https://other.test/", "git@other.test:"},
	} {
		for _, key := range []string{"insteadOf", "pushInsteadOf"} {
			config := "[remote \"r\"]\nurl = " + c.remote + "acme/tool.git\n"
			if c.rule != "" {
				config += fmt.Sprintf("[url %q]\n%s = other:\n%s = %s\n%s = another:\n", c.rule, key, key, c.from, key)
			}
			write(t, filepath.Join(dir, ".git/config"), config)
			layout := must.Get(gitlayout.Of(t.Context(), dir, func(string) bool { return false }))(t)
			own := layout.Settings(t.Context())
			write(t, system, string(gitFile("", "", insteadOfSSH(own, hosts)).Data))
			write(t, filepath.Join(dir, "https"), string(httpsFile(own, hosts).Data))
			get := []string{"remote", "get-url", "r"}
			if key == "pushInsteadOf" {
				get = []string{"remote", "get-url", "--push", "r"}
			}
			if got := run(get...); got != c.want+"acme/tool.git" {
				t.Errorf("%s (%s %s): %s is %s", c.name, key, c.rule, c.remote, got)
			}
		}
	}
}
