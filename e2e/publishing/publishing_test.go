// Package publishing follows docs/publishing.md word for word: the commands of a publisher and of their users, in the
// page's order, with the built program, git, and a stand-in for github.com.
package publishing

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/forge"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

var program string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "publishing", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		program = filepath.Join(dir, "aileron")
	}))
}

const fqn = "github://acme/tracker"

// section is a part of the page with its commands.
type section struct{ title, commands string }

// sections returns the sections of the page that have commands.
func sections(t *testing.T) (all []section) {
	t.Helper()
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "publishing.md")))(t)
	title, in := "", false
	for line := range strings.Lines(string(page)) {
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading:
			title = strings.TrimSpace(heading)
		case line == "```sh\n":
			in = true
			if len(all) == 0 || all[len(all)-1].title != title {
				all = append(all, section{title: title})
			}
		case line == "```\n":
			in = false
		case in:
			all[len(all)-1].commands += line
		}
	}
	return all
}

// person is a publisher or a user, with a home and a directory of their own.
type person struct {
	t    *testing.T
	dir  string
	at   string // the directory in which their shell is
	path string
	env  []string
}

// newPerson returns a person whose aileron reaches the stand-in, and who has a passphrase at hand where one is asked
// for. Their gh is a script: the stand-in has no API.
func newPerson(t *testing.T, f *forge.Forge) *person {
	t.Helper()
	dir := t.TempDir()
	p := &person{t: t, dir: dir, at: filepath.Join(dir, "work"), path: filepath.Join(dir, "bin")}
	for _, d := range []string{p.at, p.path, filepath.Join(dir, "home")} {
		must.Do(t, os.MkdirAll(d, 0o700))
	}
	p.write("passphrase", "a passphrase of the publisher's key\n")
	p.write("gitconfig", fmt.Sprintf("[user]\nname = A\nemail = a@acme.example\n[init]\ndefaultBranch = main\n"+
		"[url %q]\ninsteadOf = https://github.com/\n", "file://"+dir+"/forge/"))
	reach := "'" + strings.Join(f.Flags(), "' '") + "'"
	p.script("aileron", fmt.Sprintf(`case "$1 $2 $*" in
"connector keygen "* | "connector "*--sign*) set -- "$@" --passphrase-file %[2]s/passphrase ;;
"connector check "*github://* | "connector install "* | "connector outdated "*) set -- "$@" %[3]s ;;
"connector check connector check"*) set -- "$@" %[3]s ;;
esac
exec %[1]s "$@"`, program, dir, reach))
	p.script("gh", `[ "$1 $2" = "release create" ] && git rev-parse --quiet --verify "refs/tags/$3" >&2 || exit 2
mkdir -p `+dir+`/releases/"$3" && cp "$4" `+dir+`/releases/"$3"/`)
	p.env = append(os.Environ(), "AILERON_HOME="+dir+"/home", "HOME="+dir, "PATH="+p.path+":"+os.Getenv("PATH"),
		"GIT_CONFIG_GLOBAL="+dir+"/gitconfig", "GIT_CONFIG_NOSYSTEM=1", "DBUS_SESSION_BUS_ADDRESS=", "TZ=UTC")
	return p
}

func (p *person) write(name, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
}

func (p *person) script(name, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.path, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

// follow runs the commands of a section in the person's shell, and returns what they print.
func (p *person) follow(s section) string {
	p.t.Helper()
	where := filepath.Join(p.dir, "where")
	cmd := exec.CommandContext(p.t.Context(), "sh", "-ec", s.commands+"\npwd > "+where)
	cmd.Dir, cmd.Env = p.at, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s:\n%s%v\n%s", s.title, s.commands, err, out)
	}
	at := must.Get(os.ReadFile(where))(p.t)
	p.at = strings.TrimSpace(string(at))
	return string(out)
}

func TestTheGuideIsFollowedWordForWord(t *testing.T) {
	f := forge.Start(t)
	publisher, user := newPerson(t, f), newPerson(t, f)
	repo := filepath.Join(publisher.dir, "forge", "acme", "tracker.git")
	bare := exec.CommandContext(t.Context(), "git", "init", "--quiet", "--bare", repo)
	if out, err := bare.CombinedOutput(); err != nil {
		t.Fatalf("make the repository: %v\n%s", err, out)
	}
	release := func(version string) {
		archive := must.Get(os.ReadFile(filepath.Join(publisher.dir, "releases", "v"+version, "aileron.tar.gz")))(t)
		f.Publish(t, fqn, version, "aileron.tar.gz", archive)
	}
	steps := []struct {
		title string
		who   *person
		want  []string
		after func()
	}{
		{"Begin", publisher, []string{"the name is that of the Git remote: " + fqn, "wrote " + fqn + " 0.1.0"}, nil},
		{"Describe the service", publisher, nil, nil},
		{"Try it", publisher, []string{"api_key in header Authorization", "ok    tracker items.get",
			"ok    tracker items.create", "2 operations arrived as declared", "items/7?fields=title"}, nil},
		{"Sign and release", publisher, []string{"acme.key", "packed " + fqn + " 0.1.0 sha256:",
			"tagged the commit as v0.1.0"}, func() { release("0.1.0") }},
		{"What your users do", user, []string{"installed " + fqn + " 0.1.0", "github://acme"}, nil},
		{"The next version", publisher, []string{"minor  tracker items.create has the input color\n",
			"0.1.0 -> 0.2.0 in manifest.toml, aileron.connector.v1.json, README.md", "2 operations arrived as declared",
			fqn + " 0.2.0 sha256:"}, func() { release("0.2.0") }},
		{"Your users update", user, []string{"0.2.0", "installed " + fqn + " 0.2.0"}, nil},
		{"Change your key", publisher, []string{"vouches for the key", "0.2.0 -> 0.2.1", "tagged the commit as v0.2.1"},
			func() { release("0.2.1") }},
		{"Your users follow", user, []string{"the key of github://acme was replaced", "installed " + fqn + " 0.2.1",
			"  replaced  ", "  trusted  "}, nil},
	}
	page := sections(t)
	if len(page) != len(steps) {
		t.Fatalf("the page has %d sections with commands, and %d are followed", len(page), len(steps))
	}
	for i, s := range steps {
		if page[i].title != s.title {
			t.Fatalf("the section is %q, want %q", page[i].title, s.title)
		}
		out := s.who.follow(page[i])
		for _, want := range s.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s prints no %q:\n%s", s.title, want, out)
			}
		}
		if s.after != nil {
			s.after()
		}
	}
	tagged := exec.CommandContext(t.Context(), "git", "-C", repo, "ls-tree", "-r", "--name-only", "v0.2.1")
	committed, err := tagged.Output()
	if got := strings.Fields(string(committed)); err != nil || strings.Join(got, " ") !=
		".github/workflows/connector.yml .gitignore README.md acme.pub aileron.connector.v1.json manifest.toml trust" {
		t.Errorf("the tag has %q, %v", got, err)
	}
}
