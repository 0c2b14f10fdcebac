package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLimitsThatTheKernelDoesNotEnforceAreFound(t *testing.T) {
	limits := Limits{Memory: 1 << 20, CPUs: 0.5}
	dir := func(files map[string]string) string {
		at := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return at
	}
	both := func(unified bool, files map[string]string) groups {
		g := group{dir(files), unified}
		return groups{"memory": g, "cpu": g, "pids": g}
	}
	for _, c := range []struct {
		name string
		g    groups
		want []string
	}{
		{"version 1", both(false, map[string]string{
			"memory.limit_in_bytes": "1048576\n", "cpu.cfs_quota_us": "50000\n"}), nil},
		{"version 1, without limits", both(false, map[string]string{
			"memory.limit_in_bytes": "9223372036854771712\n", "cpu.cfs_quota_us": "-1\n"}), []string{"memory", "cpus"}},
		{"version 2", both(true, map[string]string{"memory.max": "1048576\n", "cpu.max": "50000 100000\n"}), nil},
		{"version 2, without limits", both(true, map[string]string{
			"memory.max": "max\n", "cpu.max": "max 100000\n"}), []string{"memory", "cpus"}},
		{"version 2, without the controllers", both(true, nil), []string{"memory", "cpus"}},
		{"the groups are of others", groupsOf("4:memory:/user\n1:cpu:/user\n", "c0ffee"), []string{"memory", "cpus"}},
		{"not known", nil, nil},
	} {
		if got := c.g.unenforced(limits); !slices.Equal(got, c.want) {
			t.Errorf("%s: unenforced = %q, want %q", c.name, got, c.want)
		}
		if got := c.g.unenforced(Limits{}); len(got) > 0 {
			t.Errorf("%s: without limits %q are not enforced", c.name, got)
		}
	}
}

func TestWhatAContainerRunsOutOfIsRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		unified bool
		files   map[string]string
		want    Exhaustion
	}{
		{"nothing", false, map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "pids.events": "max 0\n"}, Exhaustion{}},
		{"memory, version 1", false, map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, Exhaustion{Memory: true}},
		{"memory, version 2", true, map[string]string{
			"memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n"}, Exhaustion{Memory: true}},
		{"a limit that was met without a kill", true, map[string]string{
			"memory.events": "max 12\noom 0\noom_kill 0\n"}, Exhaustion{}},
		{"processes", true, map[string]string{"pids.events": "max 7\n"}, Exhaustion{Processes: true}},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g := group{dir, c.unified}
		var got Exhaustion
		groups{"memory": g, "pids": g}.look(&got)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTheGroupOfAContainerIsTheOneWithItsLimits(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "machine.slice/libpod-c0ffee.scope/container"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(root, "machine.slice/libpod-c0ffee.scope")
	for _, path := range []string{"/machine.slice/libpod-c0ffee.scope", "/machine.slice/libpod-c0ffee.scope/container"} {
		if got := groupAt(root, path, "c0ffee", true); got.dir != want {
			t.Errorf("groupAt(%s) = %q, want %q", path, got.dir, want)
		}
	}
	if got := groupAt(root, "/machine.slice", "c0ffee", true); got.dir != "" {
		t.Errorf("a group of others is taken for the container's: %q", got.dir)
	}
}
