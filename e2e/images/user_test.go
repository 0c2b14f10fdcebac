package images

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// What a sandbox leaves in a project may have its set-user-ID and set-group-ID bits. An engine with root's rights makes
// it a program of that number on this host, so the Dockerfile of a project decides neither the user nor its groups.
func TestADockerfileChoosesNoUserAndNoGroupOfTheHost(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs root, who may give files away")
		}
		t.Skip("only root may give files away")
	}
	shadow := must.Get(user.LookupGroup("shadow"))(t).Gid
	const leave = `id -u; id -G; cp /bin/true left; chgrp %s left 2>/dev/null && echo "given away"; chmod 6755 left`
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			name  string
			owner int
			mode  os.FileMode
			user  string
			said  string
		}{
			{"open to all, as root", 4321, 0o777, "root", "4321\n4321\n"},
			{"of a user of the image with more groups", 1000, 0o755, "agent", "1000\n1000 61235\n"},
			{"of a user of the image with a group of the host", 1000, 0o755, "1000:" + shadow, "1000\n1000\n"},
		} {
			t.Run(c.name, func(t *testing.T) {
				p := newPerson(t, engine)
				// Docker's builder fails where another test removes an image that it begins with.
				p.dockerfile("ENV OF=users", "USER root", "RUN groupadd --gid 61235 own && usermod -aG own,root,"+shadow+" agent",
					"USER "+c.user)
				must.Do(t, os.Chown(p.project, c.owner, c.owner))
				must.Do(t, os.Chmod(filepath.Join(p.project, "aileron.Dockerfile"), 0o666))
				must.Do(t, os.Chmod(p.project, c.mode))
				r := p.own([]string{"--yes"}, fmt.Sprintf(leave, shadow))
				if r.code != 0 || r.out != c.said {
					t.Errorf("exit %d, %q, want %q\n%s", r.code, r.out, c.said, r.err)
				}
				info := must.Get(os.Stat(filepath.Join(p.project, "left")))(t)
				st := info.Sys().(*syscall.Stat_t)
				if int(st.Uid) != c.owner || int(st.Gid) != c.owner || !strings.HasPrefix(info.Mode().String(), "ug") {
					t.Errorf("it left %v of %d:%d, want one of %d:%d with both bits", info.Mode(), st.Uid, st.Gid, c.owner, c.owner)
				}
			})
		}
	})
}
