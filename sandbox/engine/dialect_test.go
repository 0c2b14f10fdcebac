package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

func TestACommandThatCannotBeExecutedIsRecognised(t *testing.T) {
	for _, c := range []struct {
		text string
		code int // 0: it is another error
	}{
		{`OCI runtime create failed: runc create failed: exec: "nope": executable file not found in $PATH`, 127},
		{`runc: exec: "/bin/nope": stat /bin/nope: no such file or directory: unknown`, 127},
		{`runc: exec: "/etc": permission denied: unknown`, 126},
		{"crun: executable file `nope` not found in $PATH:\n No such file or directory: OCI error", 127},
		{"crun: executable file `/etc/passwd` cannot be executed: Permission denied", 126},
		{"mount /proc: no such file or directory", 0},
	} {
		code, text, ok := ExecFailure(errors.New(c.text))
		if code != c.code || ok != (c.code != 0) || strings.Contains(text, "\n") {
			t.Errorf("ExecFailure(%q) = %d, %q, %v; want %d", c.text, code, text, ok, c.code)
		}
	}
}

func TestAnErrorOfAnEngineHasOneMeaning(t *testing.T) {
	for _, c := range []struct {
		dialect dialect
		text    string
		want    fault
	}{
		{docker{}, "Error response from daemon: No such container: x", faultNotFound},
		{docker{}, "Error response from daemon: removal of container x is already in progress", faultRemoving},
		{podman{}, `no container with name or ID "x" found: no such container`, faultNotFound},
		{podman{}, "container x not known: half removed", faultHalfGone},
		{podman{}, "container x has dependent containers which must be removed before it: y", faultDependents},
		{podman{}, "lstat /x: no such file or directory", faultNoFile},
	} {
		e := &Engine{dialect: c.dialect}
		for f := faultNotFound; f <= faultNoFile; f++ {
			if got := e.means(errors.New(c.text), f); got != (f == c.want) {
				t.Errorf("%s: %q means %d: %v", c.dialect.name(), c.text, f, got)
			}
		}
	}
}

// A path that Podman would read as options of its mount goes by another form, or
// is refused.
func TestPodmanMisreadsNoPath(t *testing.T) {
	bind := func(source string) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: source, Target: "/w", ReadOnly: true}
	}
	for source, want := range map[string]string{
		"/p":            "", // as a mount
		"/p,source=etc": "/p,source=etc:/w:ro",
		`/p"q`:          `/p"q:/w:ro`,
		"/p:q,r":        "refused",
		"/p\nq":         "refused",
	} {
		host := &container.HostConfig{Mounts: []mount.Mount{bind(source)}}
		err := podman{}.adapt(&container.Config{}, host)
		got := strings.Join(host.Binds, " ")
		if err != nil {
			got = "refused"
		}
		if got != want || (want == "") != (len(host.Mounts) == 1) && err == nil {
			t.Errorf("%q: %q, mounts %v, %v; want %q", source, got, host.Mounts, err, want)
		}
	}
}

// Podman's containers have a host name of their own beside the gateway's
// network, and Docker's may not.
func TestAJoinedContainersHostNameIsTheEnginesOwnRule(t *testing.T) {
	for _, c := range []struct {
		dialect  dialect
		network  string
		hostname string
	}{
		{docker{}, "container:gw", ""},
		{docker{}, "none", "box"},
		{podman{}, "container:gw", "box"},
	} {
		config := &container.Config{Hostname: "box"}
		host := &container.HostConfig{NetworkMode: container.NetworkMode(c.network)}
		if err := c.dialect.adapt(config, host); err != nil || config.Hostname != c.hostname {
			t.Errorf("%s, %s: host name %q, %v; want %q", c.dialect.name(), c.network, config.Hostname, err, c.hostname)
		}
	}
}
