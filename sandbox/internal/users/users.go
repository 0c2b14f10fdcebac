// Package users reads which user and groups a name of an image stands for, and which of them a user of this host has.
package users

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// ID is a user in numbers, with the groups that it has besides its own.
type ID struct {
	UID, GID int
	Groups   []int
}

// String returns the form in which no engine looks for a name, or for more groups.
func (i ID) String() string { return fmt.Sprintf("%d:%d", i.UID, i.GID) }

// GroupAdd returns the groups besides its own as engines take them.
func (i ID) GroupAdd() (groups []string) {
	for _, gid := range i.Groups {
		groups = append(groups, strconv.Itoa(gid))
	}
	return groups
}

// In returns what an engine reads for a user, which is not root, in lists of users and groups: the first entry
// decides, space around it does not count, and a user with a group of its own choice has no other.
func In(users, groups []byte, user string) (ID, error) {
	name, group, _ := strings.Cut(user, ":")
	var id ID
	var err error
	if id.UID, err = strconv.Atoi(name); err == nil {
		if entry := Entry(users, id.UID); len(entry) > 3 {
			name = strings.TrimSpace(entry[0])
			id.GID, err = strconv.Atoi(entry[3])
		}
	} else {
		id.UID, id.GID, err = Numbered(users, name)
	}
	if err != nil {
		return ID{}, err
	}
	if gid, err := strconv.Atoi(group); err == nil {
		id.GID = gid
		return id, nil
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 3 {
			continue
		}
		switch gid, err := strconv.Atoi(fields[2]); {
		case group == "" && err == nil && len(fields) > 3 && slices.Contains(strings.Split(fields[3], ","), name):
			id.Groups = append(id.Groups, gid)
		case group == "" || fields[0] != group:
		case err != nil:
			return ID{}, fmt.Errorf("the image's entry of the group %s has no number", group)
		default:
			id.GID = gid
			return id, nil
		}
	}
	if group != "" {
		return ID{}, fmt.Errorf("the image has no group %s", group)
	}
	return id, nil
}

// Host is what this host knows of one of its users.
type Host struct {
	uid    int
	groups []int              // its own is the first; nil: the host does not list the user
	lists  func(gid int) bool // whether the host lists a group
}

// OnHost looks a user of this host up.
func OnHost(uid int) Host {
	h := Host{uid: uid, lists: func(gid int) bool {
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
func (h Host) has(gid int) bool {
	return h.uid == 0 || slices.Contains(h.groups, gid) || gid != 0 && !h.lists(gid)
}

// noGroup is the group of those who have none.
const noGroup = 65534

// Confine returns id without the groups that the user does not have on this host: a command may leave a program in the
// project that has the set-group-ID bit of any group of its own. In place of its own group id has that of the project,
// if the user has that, or one of the user's.
func (h Host) Confine(id ID, project int) ID {
	id.Groups = slices.DeleteFunc(slices.Clone(id.Groups), func(gid int) bool { return !h.has(gid) })
	for _, gid := range append([]int{id.GID, project}, h.groups...) {
		if h.has(gid) {
			id.GID = gid
			return id
		}
	}
	id.GID = noGroup
	return id
}

// Numeric reports whether a user has no name.
func Numeric(user string) bool {
	uid, _, _ := strings.Cut(user, ":")
	_, err := strconv.Atoi(uid)
	return err == nil
}

// Numbers are those of a user that has no name.
func Numbers(user string) (uid, gid int) {
	_, _ = fmt.Sscanf(user, "%d:%d", &uid, &gid)
	return uid, gid
}

// Entry returns the fields of a number's entry in a list of users or groups,
// or nil.
func Entry(list []byte, id int) []string {
	for line := range strings.Lines(string(list)) {
		if fields := strings.Split(strings.TrimRight(line, "\n"), ":"); len(fields) > 2 && fields[2] == strconv.Itoa(id) {
			return fields
		}
	}
	return nil
}

// Numbered returns the numbers of a user of a list, as engines read it: the first entry decides, space around it does
// not count, and what lacks numbers would have those of root.
func Numbered(list []byte, name string) (uid, gid int, err error) {
	for line := range strings.Lines(string(list)) {
		entry := strings.Split(strings.TrimSpace(line), ":")
		if entry[0] != name {
			continue
		}
		if len(entry) < 4 {
			return 0, 0, fmt.Errorf("the image's entry of the user %s has no numbers", name)
		}
		uid, uidErr := strconv.Atoi(entry[2])
		gid, gidErr := strconv.Atoi(entry[3])
		return uid, gid, errors.Join(uidErr, gidErr)
	}
	return 0, 0, fmt.Errorf("the image has no user %s", name)
}
