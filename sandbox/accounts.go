package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

// userFiles are the files by which a sandbox's user works like one of the image:
// an entry in its lists of users and groups, without which whoami, ssh and git
// fail, and for user 0 the settings with which apt needs no capability.
func (e *Engine) userFiles(ctx context.Context, image Image, user string) ([]File, error) {
	etc, err := e.etcOf(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("look for the user of the sandbox: %w", err)
	}
	files := aptFiles(etc, user)
	if !numeric(user) {
		return files, nil // a name that the image knows, or its default
	}
	uid, gid := numbers(user)
	name := freeName(etc, uid)
	for _, list := range []struct {
		path, form string
		id         int
	}{
		{"etc/passwd", fmt.Sprintf("%s:x:%d:%d::%s:%%s\n", name, uid, gid, path.Dir(Workspace)), uid},
		{"etc/group", fmt.Sprintf("%s:x:%d:\n", name, gid), gid},
	} {
		data, known := readList(etc, list.path)
		if !known || entryOf(data, list.id) != nil {
			continue
		}
		shell := "/bin/sh"
		if root := entryOf(data, 0); len(root) == 7 {
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

// entryOf returns the fields of a number's entry in a list of users or groups,
// or nil.
func entryOf(list []byte, id int) []string {
	for line := range strings.Lines(string(list)) {
		if fields := strings.Split(strings.TrimRight(line, "\n"), ":"); len(fields) > 2 && fields[2] == strconv.Itoa(id) {
			return fields
		}
	}
	return nil
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
	if name, _, _ := strings.Cut(user, ":"); name != "" && name != "root" && name != "0" {
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
