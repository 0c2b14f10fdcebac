package sandbox

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/users"
)

// runAs is the user of a command.
type runAs struct {
	user    string   // in numbers
	groups  []string // besides that of user
	hasHome bool     // in the image
	ownHome bool     // it is given the home
}

// boxUser decides which user the command is. The image's own user is kept where
// it can write to the project. Where it cannot, the command runs as the
// project's owner, and gets a home of its own: without capabilities even user 0
// is only the owner of its files. On a rootless engine user 0 is the person who
// runs it.
//
// On any other engine it is that user of this host for what it leaves in the project, with any set-user-ID and
// set-group-ID bit. So it is user 0 only in root's project, no image that a project has made chooses another user than
// the owner, and its groups are those of the user on this host.
func (e *Engine) boxUser(ctx context.Context, b box, image engine.Image) (runAs, error) {
	host, err := e.Host(ctx)
	if err != nil {
		return runAs{}, fmt.Errorf("ask %s whether it runs without root: %w", e.Kind(), err)
	}
	if host.Rootless {
		return runAs{user: "0:0", ownHome: true}, nil
	}
	info, err := os.Stat(b.Dir)
	if err != nil {
		return runAs{}, fmt.Errorf("look at the project: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return runAs{}, fmt.Errorf("look at the project: the owner of %s is not known", b.Dir)
	}
	owner := users.ID{UID: int(st.Uid), GID: int(st.Gid)}
	user, kept, err := e.composedUser(ctx, b, image, host, owner.UID)
	if err != nil {
		return runAs{}, err
	}
	if missing, err := e.findUser(ctx, b.Image, user); err != nil {
		return runAs{}, err
	} else if len(missing) > 0 {
		return runAs{}, &ImageError{Image: b.Image.Ref, Missing: missing}
	}
	id, err := e.identityOf(ctx, b.Image, user)
	if err != nil {
		return runAs{}, fmt.Errorf("look for the user of the sandbox: %w", err)
	}
	as := runAs{hasHome: hasHome(image, user), ownHome: users.Numeric(user) && !namesHome(image.Env)}
	chosen := !b.Image.project && b.Composed == nil && id.UID != 0 && openToAll(b.Dir)
	switch {
	case id.UID == 0 && owner.UID == 0:
		id, as.ownHome = users.ID{}, true
	case !kept && !chosen && id.UID != owner.UID:
		id, as.ownHome = owner, true
	}
	if !host.Remapped {
		id = users.OnHost(id.UID).Confine(id, owner.GID)
	}
	as.user, as.groups = id.String(), id.GroupAdd()
	return as, nil
}

// maxOpenEntries bounds the entries of a project that openToAll looks at.
const maxOpenEntries = 256

// openToAll reports whether all users may write to a directory and to what is in it: a file system may be mounted for
// all, and have a repository that only its owner writes to.
func openToAll(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	info, err := d.Stat()
	entries, _ := d.ReadDir(maxOpenEntries)
	return err == nil && info.Mode().Perm()&0o002 != 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err != nil || e.Type()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o002 == 0
	})
}

// chownHome makes a user the owner of the home in a created container.
func (e *Engine) chownHome(ctx context.Context, id, user string) error {
	archive, err := archiveOf(nil, homeOf(user))
	if err == nil {
		err = e.WriteArchive(ctx, id, "/", archive)
	}
	if err != nil {
		return fmt.Errorf("give %s a home: %w", user, err)
	}
	return nil
}

// homeOf is the home in an archive for a container, which makes a user its
// owner. What the image has there stays; a tmpfs would get the image's mode from
// some runtimes and its owner from others.
func homeOf(user string) *tar.Header {
	uid, gid := users.Numbers(user)
	return &tar.Header{Name: "home/agent/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: uid, Gid: gid}
}

// mountHome mounts a home that can be written to into a sandbox with a read-only
// root, and reports whether its user must still be made its owner. On Docker a
// tmpfs belongs to the user: it changes nothing in such a container.
func (e *Engine) mountHome(config *engine.Config, user string, own bool) bool {
	home := path.Dir(Workspace)
	if options, ok := e.OwnedTmpfs(users.Numbers(user)); own && ok {
		config.Tmpfs[home] = options
		return false
	}
	config.Mounts = append(config.Mounts, engine.Mount{Target: home}) // a volume: it begins with what the image has there
	return own
}

// userFiles are the files by which a sandbox's user works like one of the image:
// an entry in its lists of users and groups, without which whoami, ssh and git
// fail, and for user 0 the settings with which apt needs no capability.
func (e *Engine) userFiles(ctx context.Context, image Image, user string) ([]File, error) {
	etc, err := e.etcOf(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("look for the user of the sandbox: %w", err)
	}
	files := aptFiles(etc, user)
	uid, gid := users.Numbers(user)
	name := freeName(etc, uid)
	for _, list := range []struct {
		path, form string
		id         int
	}{
		{"etc/passwd", fmt.Sprintf("%s:x:%d:%d::%s:%%s\n", name, uid, gid, path.Dir(Workspace)), uid},
		{"etc/group", fmt.Sprintf("%s:x:%d:\n", name, gid), gid},
	} {
		data, known := readList(etc, list.path)
		if !known || users.Entry(data, list.id) != nil {
			continue
		}
		shell := "/bin/sh"
		if root := users.Entry(data, 0); len(root) == 7 {
			shell = cmp.Or(root[6], shell)
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		entry := strings.Replace(list.form, "%s", shell, 1)
		files = append(files, File{Path: "/" + list.path, Mode: 0o644, Data: append(data, entry...)})
	}
	return files, nil
}

// etcOf returns the files of an image's /etc that are not too large.
func (e *Engine) etcOf(ctx context.Context, image Image) (fs.FS, error) {
	if known := e.known(image.id); known != nil {
		return known.With(imagefs.Source{}), nil
	}
	files, err := e.OpenImage(ctx, image)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	return files.With(imagefs.Source{}), nil
}

// readList reads a list of users or groups; one that does not exist is empty. It
// is not known if it is too large, or no file of its own.
func readList(etc fs.FS, name string) (data []byte, known bool) {
	data, err := fs.ReadFile(etc, name)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	return slices.Clone(data), true
}

// freeName returns a name for a user that is in neither of the lists.
func freeName(etc fs.FS, uid int) string {
	names := []string{"agent", "user", "u" + strconv.Itoa(uid)}
	if uid == 0 {
		names = append([]string{"root"}, names...)
	}
	for _, name := range names {
		users, _ := readList(etc, "etc/passwd")
		groups, _ := readList(etc, "etc/group")
		entry := []byte("\n" + name + ":")
		if !bytes.Contains(slices.Concat([]byte("\n"), users, []byte("\n"), groups), entry) {
			return name
		}
	}
	return names[len(names)-1]
}

// aptConf keeps apt from changing to its own user, which no process of a sandbox
// can. Signatures are checked all the same.
const aptConf = "APT::Sandbox::User \"root\";\n"

// aptFiles are what lets user 0 install Debian's packages although it has no
// capability: without one it is only the owner of its files, and the directories
// to which apt downloads belong to apt's user once it was used. They become
// root's.
func aptFiles(etc fs.FS, user string) []File {
	if uid, _ := users.Numbers(user); uid != 0 {
		return nil
	}
	if info, err := fs.Stat(etc, "etc/apt/apt.conf.d"); err != nil || !info.IsDir() {
		return nil
	}
	return []File{
		{Path: "/etc/apt/apt.conf.d/90aileron", Mode: 0o644, Data: []byte(aptConf)},
		{Path: "/var/lib/apt/lists/partial", Mode: fs.ModeDir | 0o755},
		{Path: "/var/cache/apt/archives/partial", Mode: fs.ModeDir | 0o755},
	}
}

// identityOf returns what an engine reads for a user in the lists of an image; "" is root.
func (e *Engine) identityOf(ctx context.Context, image Image, user string) (users.ID, error) {
	name, group, _ := strings.Cut(user, ":")
	if name == "" || name == "root" {
		return users.ID{}, nil
	}
	if users.Numeric(user) && users.Numeric(group) {
		uid, gid := users.Numbers(user)
		return users.ID{UID: uid, GID: gid}, nil
	}
	etc, err := e.etcOf(ctx, image)
	if err != nil {
		return users.ID{}, err
	}
	var lists [2][]byte
	for i, list := range []string{"etc/passwd", "etc/group"} {
		if lists[i], err = fs.ReadFile(etc, list); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return users.ID{}, fmt.Errorf("read /%s of the image: %w", list, err)
		}
	}
	return users.In(lists[0], lists[1], user)
}
