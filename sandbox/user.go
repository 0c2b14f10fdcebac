package sandbox

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// boxUser decides which user the command is. The image's own user is kept where
// it can write to the project. Where it cannot, the command runs as the
// project's owner, and gets a home of its own: without capabilities even user 0
// is only the owner of its files. On a rootless engine user 0 is the person who
// runs it.
func (e *Engine) boxUser(ctx context.Context, b box, image engine.Image) (user string, ownHome bool, err error) {
	host, err := e.Host(ctx)
	if err != nil {
		return "0:0", true, fmt.Errorf("ask %s whether it runs without root: %w", e.Kind(), err)
	}
	if host.Rootless {
		return "0:0", true, nil
	}
	homeless := numeric(image.User) && !namesHome(image.Env)
	info, err := os.Stat(b.Dir)
	if err != nil {
		return "", false, fmt.Errorf("look at the project: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o002 != 0 {
		return image.User, homeless, nil
	}
	owner := strconv.Itoa(int(st.Uid))
	// In numbers: what a name stands for is decided by the image.
	uid, _, _ := strings.Cut(image.User, ":")
	if owner == "0" && (uid == "" || uid == "root" || uid == "0") {
		return "0:0", true, nil
	}
	if uid == owner {
		return image.User, homeless, nil
	}
	if uid == "agent" && owner == "1000" {
		return "1000:1000", false, nil
	}
	return owner + ":" + strconv.Itoa(int(st.Gid)), true, nil
}

// numeric reports whether a user has no name.
func numeric(user string) bool {
	uid, _, _ := strings.Cut(user, ":")
	_, err := strconv.Atoi(uid)
	return err == nil
}

// numbers are those of a user that has no name; root's, of one that has.
func numbers(user string) (uid, gid int) {
	_, _ = fmt.Sscanf(user, "%d:%d", &uid, &gid)
	return uid, gid
}

// chownHome makes a user the owner of the home in a created container.
func (e *Engine) chownHome(ctx context.Context, id, user string) error {
	archive, err := archiveOf(nil, homeOf(user))
	if err == nil {
		err = e.WriteArchive(ctx, id, archive)
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
	uid, gid := numbers(user)
	return &tar.Header{Name: "home/agent/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: uid, Gid: gid}
}

// mountHome mounts a home that can be written to into a sandbox with a read-only
// root, and reports whether its user must still be made its owner. On Docker a
// tmpfs belongs to the user: it changes nothing in such a container.
func (e *Engine) mountHome(config *engine.Config, user string, own bool) bool {
	home := path.Dir(Workspace)
	if options, ok := e.OwnedTmpfs(numbers(user)); own && ok {
		config.Tmpfs[home] = options
		return false
	}
	config.Mounts = append(config.Mounts, engine.Mount{Target: home}) // a volume: it begins with what the image has there
	return own
}
