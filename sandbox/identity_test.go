package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// plantLists sets the lists of users and groups of the image of a recorder.
func plantLists(t *testing.T, e *Engine, users, groups string) {
	t.Helper()
	archive := must.Get(archiveOf([]File{{Path: "/etc", Mode: fs.ModeDir | 0o755},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte(users)}, {Path: "/etc/group", Mode: 0o644, Data: []byte(groups)}}))(t)
	e.seen.Store("sha256:pinned", imagefs.New(must.Get(imagefs.ReadTree(archive))(t), imagefs.Source{}))
}

// openBox returns a box whose project is open to all, and its owner, who is not root.
func openBox(t *testing.T) (b Box, owner int) {
	t.Helper()
	b, owner = anyBox(t), os.Getuid()
	if owner == 0 {
		owner = 4321
		must.Do(t, os.Chown(b.Dir, owner, owner))
	}
	must.Do(t, os.Chmod(b.Dir, 0o777))
	return b, owner
}

// A command may leave a program with its set-user-ID bit in the project. No file of a project, and no image at all as
// root, chooses whose program that is.
func TestAnImageIsNoOtherUserOfThisHostThanItMayBe(t *testing.T) {
	e, _ := recorder(t, "docker", container.Config{})
	plantLists(t, e, "", "")
	base := Image{Ref: "of/its/own"}
	custom := must.Get(CustomImage(BaseImage(), nil, []byte("ARG BASE\nFROM ${BASE}\nUSER 0\n")))(t)
	projects := map[string]Image{
		"aileron.Dockerfile": custom, "a devcontainer's image": ProjectImage("x"), "its build": BuiltImage(nil, Build{}, nil),
		"its features": FeaturesImage(base, Features{}), "an agent's layer": layerOf(ProjectImage("x"), base, Layer{}),
	}
	for _, user := range []string{"", "0", "root", "0:0", "61234:61234"} {
		for name, image := range projects {
			b, owner := openBox(t)
			b.Image = image
			as, err := e.boxUser(t.Context(), b, engine.Image{User: user})
			if err != nil || !strings.HasPrefix(as.user, fmt.Sprint(owner, ":")) || !as.ownHome {
				t.Errorf("%s, USER %q: %+v, %v; want the owner %d with a home", name, user, as, err, owner)
			}
		}
		b, owner := openBox(t)
		b.Image = base
		as, err := e.boxUser(t.Context(), b, engine.Image{User: user})
		want := fmt.Sprint(owner, ":")
		if user == "61234:61234" {
			want = user
		}
		if err != nil || !strings.HasPrefix(as.user, want) {
			t.Errorf("an image that a person named, USER %q: %+v, %v; want %s", user, as, err, want)
		}
	}
}

// The engine gets numbers: what a name stands for is decided by the image, and may be more groups.
func TestAnEngineGetsNumbers(t *testing.T) {
	b := anyBox(t)
	owner := os.Getuid()
	if owner == 0 {
		owner = 4321
		must.Do(t, os.Chown(b.Dir, owner, owner))
	}
	e, askedFor := recorder(t, "docker", container.Config{User: "dev"})
	plantLists(t, e, fmt.Sprintf("dev:x:%d:61234::/home/dev:\n", owner), "root:x:0:dev\nnvm:x:61235:dev\n")
	must.Get(e.createBox(t.Context(), b, &engine.Container{ID: "the-gateway"}, "p"))(t)
	a := askedFor("box")
	if want := fmt.Sprint(owner, ":61234"); a.User != want || !slices.Equal(a.HostConfig.GroupAdd, []string{"61235"}) {
		t.Errorf("the user is %q with the groups %q, want %q with 61235 alone", a.User, a.HostConfig.GroupAdd, want)
	}
	if slices.ContainsFunc(a.Env, func(pair string) bool { return strings.HasPrefix(pair, "HOME=") }) {
		t.Errorf("it has another home than the image's: %q", a.Env)
	}
}
