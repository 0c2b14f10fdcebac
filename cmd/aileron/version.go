package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which aileron this is",
		Example: "  aileron version --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.json {
				return a.printJSON(map[string]string{
					"version": b.release, "details": b.details, "time": b.time, "go": runtime.Version(),
				})
			}
			fmt.Fprintln(a.stdout, "aileron version "+b.String())
			return nil
		},
	}
}

// version is the release that -ldflags "-X main.version=…" names, and "" in other builds.
var version string

// devVersion is the version of a build that is not a release. The images of such builds have it in their tags.
const devVersion = "0.1.0-dev"

// testOnlyWorkFactor is the scrypt work factor of the program that the
// end-to-end tests build with -ldflags "-X main.testOnlyWorkFactor=…". It is
// empty in a release, in which nothing sets it: see [vault.TestOnlyWorkFactor].
var testOnlyWorkFactor string

// build is what this program was built from.
type build struct {
	release string // a version without the v, or devVersion
	details string // how a build that is not a release differs from others, "" if that is not known
	time    string // of the commit, in RFC 3339, or ""
}

// thisBuild returns what this program was built from.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeBuild(version, info)
}

// describeBuild returns what a program was built from: set is the release that its linker was given, if any. go
// install names a released module by its version, and go build the commit of the work tree.
func describeBuild(set string, info *debug.BuildInfo) build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := build{release: devVersion, time: settings["vcs.time"]}
	switch revision := settings["vcs.revision"]; {
	case set != "":
		b.release = set
	case isRelease(info.Main.Version):
		b.release = strings.TrimPrefix(info.Main.Version, "v")
	case revision != "":
		b.details = "commit " + revision[:min(len(revision), 12)]
		if settings["vcs.modified"] == "true" {
			b.details += ", modified"
		}
	}
	return b
}

// isRelease reports whether a module's version is a release's, and not one that the go command makes up for a commit.
func isRelease(version string) bool {
	return regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?$`).MatchString(version)
}

// String returns what --version prints. A program that was built for the tests is named as such: it must not be
// mistaken for a release.
func (b build) String() string {
	details := b.details
	if testOnlyWorkFactor != "" {
		details = strings.TrimPrefix(details+"; for tests only: its vaults are cheap to open", "; ")
	}
	if details == "" {
		return b.release
	}
	return b.release + " (" + details + ")"
}
