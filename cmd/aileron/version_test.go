package main

import (
	"runtime/debug"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func TestTheVersionComesFromTheBuild(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	modified := append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		what, set, module string
		settings          []debug.BuildSetting
		want, release     string
	}{
		{"a release", "1.2.3", "v1.2.3-0.20261122150000-0123456789ab+dirty", modified, "1.2.3", "1.2.3"},
		{"go install at a release", "", "v1.2.3", nil, "1.2.3", "1.2.3"},
		{"go install at a release candidate", "", "v1.2.3-rc.1", nil, "1.2.3-rc.1", "1.2.3-rc.1"},
		{"go install at a commit", "", "v0.0.0-20261122150000-0123456789ab", nil, cli.DevVersion, cli.DevVersion},
		{"a clean work tree", "", "v0.0.0-20261122150000-0123456789ab", commit, cli.DevVersion + " (commit 0123456789ab)",
			cli.DevVersion},
		{"a changed work tree", "", "(devel)", modified, cli.DevVersion + " (commit 0123456789ab, modified)", cli.DevVersion},
		{"no version control", "", "", nil, cli.DevVersion, cli.DevVersion},
	} {
		b := describeBuild(c.set, &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings})
		if b.String() != c.want || b.Release != c.release {
			t.Errorf("%s: the version is %q of release %q, want %q of %q", c.what, b, b.Release, c.want, c.release)
		}
	}
}
