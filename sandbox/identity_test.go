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

// The same is true of the set-group-ID bit.
func TestAnImageChoosesNoGroupOfThisHost(t *testing.T) {
	h := hostUser{uid: 1000, groups: []int{100, 27}, lists: func(gid int) bool { return gid < 1000 }}
	for _, c := range []struct {
		who     hostUser
		id      identity
		project int
		want    string
	}{
		{h, identity{1000, 1000, nil}, 1000, "1000:1000 []"}, // of none of this host
		{h, identity{1000, 27, []int{27, 998, 100, 0, 1234}}, 1000, "1000:27 [27 100 1234]"},
		{h, identity{1000, 998, nil}, 27, "1000:27 []"},
		{h, identity{1000, 0, []int{0}}, 998, "1000:100 []"},
		{hostUser{uid: 7, lists: h.lists}, identity{7, 0, nil}, 0, "7:65534 []"},
		{hostUser{uid: 7, lists: func(int) bool { return false }}, identity{7, 0, []int{0}}, 0, "7:65534 []"},
		{hostUser{uid: 7, lists: h.lists}, identity{7, 7, nil}, 4321, "7:4321 []"},
		{hostUser{lists: h.lists}, identity{0, 998, []int{5}}, 0, "0:998 [5]"},
	} {
		got := c.who.confine(c.id, c.project)
		if text := fmt.Sprint(got, " ", got.groups); text != c.want {
			t.Errorf("%d with %v, %+v, of the project %d: %s, want %s", c.who.uid, c.who.groups, c.id, c.project, text, c.want)
		}
	}
	// This host's own lists, and those of this process.
	if h := onHost(os.Getuid()); !slices.Contains(h.groups, os.Getgid()) || !h.has(os.Getgid()) || !h.lists(0) ||
		h.lists(1<<30) {
		t.Errorf("of this process's user: %+v, root's group listed: %v, one that does not exist: %v", h, h.lists(0),
			h.lists(1<<30))
	}
	if h := onHost(61234); h.has(0) {
		t.Errorf("a user that this host lacks has root's group: %+v", h)
	}
}

func TestAUserHasTheGroupsThatAnEngineReads(t *testing.T) {
	const users = "root:x:0:0::/root:\n dev:x:1000:50::/home/dev:/bin/sh\ndev:x:0:0::/:\nother:x:1000:51::/:\n" +
		"bad:x:y:z::/:\n"
	const groups = "root:x:0:dev\nnvm:x:998:app,dev\n sudo:x:27:dev\nodd:x\nnone:x:y:dev\nnear:x:5:devel,xdev\nnvm:x:7:\n"
	for user, want := range map[string]string{
		"dev":       "1000:50 [0 998 27] <nil>",
		"1000":      "1000:50 [0 998 27] <nil>",
		"dev:nvm":   "1000:998 [] <nil>",
		"dev:5":     "1000:5 [] <nil>",
		"1000:nvm":  "1000:998 [] <nil>",
		"77":        "77:0 [] <nil>",
		"dev:wheel": "0:0 [] the image has no group wheel",
		"dev:none":  "0:0 [] the image's entry of the group none has no number",
		"app":       "0:0 [] the image has no user app",
		"bad":       `0:0 [] strconv.Atoi: parsing "y": invalid syntax`,
	} {
		id, err := identityIn([]byte(users), []byte(groups), user)
		if got := fmt.Sprint(id, " ", id.groups, " ", err); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", user, got, want)
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
