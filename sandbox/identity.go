package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// identity is a user in numbers, with the groups that it has besides its own.
type identity struct {
	uid, gid int
	groups   []int
}

// String returns the form in which no engine looks for a name, or for more groups.
func (i identity) String() string { return fmt.Sprintf("%d:%d", i.uid, i.gid) }

// groupAdd returns the groups besides its own as engines take them.
func (i identity) groupAdd() (groups []string) {
	for _, gid := range i.groups {
		groups = append(groups, strconv.Itoa(gid))
	}
	return groups
}

// identityOf returns what an engine reads for a user in the lists of an image; "" is root.
func (e *Engine) identityOf(ctx context.Context, image Image, user string) (identity, error) {
	name, group, _ := strings.Cut(user, ":")
	if name == "" || name == "root" {
		return identity{}, nil
	}
	if numeric(user) && numeric(group) {
		uid, gid := numbers(user)
		return identity{uid: uid, gid: gid}, nil
	}
	etc, err := e.etcOf(ctx, image)
	if err != nil {
		return identity{}, err
	}
	var lists [2][]byte
	for i, list := range []string{"etc/passwd", "etc/group"} {
		if lists[i], err = fs.ReadFile(etc, list); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return identity{}, fmt.Errorf("read /%s of the image: %w", list, err)
		}
	}
	return identityIn(lists[0], lists[1], user)
}

// identityIn returns what an engine reads for a user, which is not root, in lists of users and groups: the first entry
// decides, space around it does not count, and a user with a group of its own choice has no other.
func identityIn(users, groups []byte, user string) (identity, error) {
	name, group, _ := strings.Cut(user, ":")
	var id identity
	var err error
	if id.uid, err = strconv.Atoi(name); err == nil {
		if entry := entryOf(users, id.uid); len(entry) > 3 {
			name = strings.TrimSpace(entry[0])
			id.gid, err = strconv.Atoi(entry[3])
		}
	} else {
		id.uid, id.gid, err = idsIn(users, name)
	}
	if err != nil {
		return identity{}, err
	}
	if gid, err := strconv.Atoi(group); err == nil {
		id.gid = gid
		return id, nil
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 3 {
			continue
		}
		switch gid, err := strconv.Atoi(fields[2]); {
		case group == "" && err == nil && len(fields) > 3 && slices.Contains(strings.Split(fields[3], ","), name):
			id.groups = append(id.groups, gid)
		case group == "" || fields[0] != group:
		case err != nil:
			return identity{}, fmt.Errorf("the image's entry of the group %s has no number", group)
		default:
			id.gid = gid
			return id, nil
		}
	}
	if group != "" {
		return identity{}, fmt.Errorf("the image has no group %s", group)
	}
	return id, nil
}

// hostUser is what this host knows of one of its users.
type hostUser struct {
	uid    int
	groups []int              // its own is the first; nil: the host does not list the user
	lists  func(gid int) bool // whether the host lists a group
}

// onHost looks a user of this host up.
func onHost(uid int) hostUser {
	h := hostUser{uid: uid, lists: func(gid int) bool {
		_, err := user.LookupGroupId(strconv.Itoa(gid))
		return !errors.As(err, new(user.UnknownGroupIdError))
	}}
	if uid == os.Getuid() {
		h.groups = append(h.groups, os.Getgid())
		own, _ := os.Getgroups()
		h.groups = append(h.groups, own...)
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		ids, _ := u.GroupIds()
		for _, id := range append([]string{u.Gid}, ids...) {
			if gid, err := strconv.Atoi(id); err == nil {
				h.groups = append(h.groups, gid)
			}
		}
	}
	return h
}

// has reports whether a group allows the user nothing new: it is one of the user's, or none of this host's.
func (h hostUser) has(gid int) bool {
	return h.uid == 0 || slices.Contains(h.groups, gid) || gid != 0 && !h.lists(gid)
}

// noGroup is the group of those who have none.
const noGroup = 65534

// confine returns id without the groups that the user does not have on this host: a command may leave a program in the
// project that has the set-group-ID bit of any group of its own. In place of its own group id has that of the project,
// if the user has that, or one of the user's.
func (h hostUser) confine(id identity, project int) identity {
	id.groups = slices.DeleteFunc(slices.Clone(id.groups), func(gid int) bool { return !h.has(gid) })
	for _, gid := range append([]int{id.gid, project}, h.groups...) {
		if h.has(gid) {
			id.gid = gid
			return id
		}
	}
	id.gid = noGroup
	return id
}
