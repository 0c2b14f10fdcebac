package users

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A command may leave a program with the set-group-ID bit of any group of its own.
func TestAnImageChoosesNoGroupOfThisHost(t *testing.T) {
	h := Host{uid: 1000, groups: []int{100, 27}, lists: func(gid int) bool { return gid < 1000 }}
	for _, c := range []struct {
		who     Host
		id      ID
		project int
		want    string
	}{
		{h, ID{1000, 1000, nil}, 1000, "1000:1000 []"}, // of none of this host
		{h, ID{1000, 27, []int{27, 998, 100, 0, 1234}}, 1000, "1000:27 [27 100 1234]"},
		{h, ID{1000, 998, nil}, 27, "1000:27 []"},
		{h, ID{1000, 0, []int{0}}, 998, "1000:100 []"},
		{Host{uid: 7, lists: h.lists}, ID{7, 0, nil}, 0, "7:65534 []"},
		{Host{uid: 7, lists: func(int) bool { return false }}, ID{7, 0, []int{0}}, 0, "7:65534 []"},
		{Host{uid: 7, lists: h.lists}, ID{7, 7, nil}, 4321, "7:4321 []"},
		{Host{lists: h.lists}, ID{0, 998, []int{5}}, 0, "0:998 [5]"},
	} {
		got := c.who.Confine(c.id, c.project)
		if text := fmt.Sprint(got, " ", got.Groups); text != c.want {
			t.Errorf("%d with %v, %+v, of the project %d: %s, want %s", c.who.uid, c.who.groups, c.id, c.project, text, c.want)
		}
	}
	// This host's own lists, and those of this process.
	if h := OnHost(os.Getuid()); !slices.Contains(h.groups, os.Getgid()) || !h.has(os.Getgid()) || !h.lists(0) ||
		h.lists(1<<30) {
		t.Errorf("of this process's user: %+v, root's group listed: %v, one that does not exist: %v", h, h.lists(0),
			h.lists(1<<30))
	}
	if h := OnHost(61234); h.has(0) {
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
		id, err := In([]byte(users), []byte(groups), user)
		if got := fmt.Sprint(id, " ", id.Groups, " ", err); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", user, got, want)
		}
	}
}

// An engine takes the first entry of a name, and user 0 where it has no number.
func TestTheNumbersOfAUserAreThoseThatAnEngineReads(t *testing.T) {
	for list, want := range map[string]string{
		"a:x:1:1::/:\nnode:x:1000:1001::/:/bin/sh\n":    "1000 1001 <nil>",
		"node:x:7:8::/:\nnode:x:1000:1000::/:/bin/sh\n": "7 8 <nil>",
		" node:x:7:8::/:\nnode:x:1000:1000::/:\n":       "7 8 <nil>",
		"node:x\nnode:x:1000:1000::/:\n":                "0 0 the image's entry of the user node has no numbers",
		"nod:x:1000:1000::/:\n":                         "0 0 the image has no user node",
	} {
		uid, gid, err := Numbered([]byte(list), "node")
		if got := fmt.Sprint(uid, " ", gid, " ", err); got != want {
			t.Errorf("of %q: %s, want %s", list, got, want)
		}
	}
}
