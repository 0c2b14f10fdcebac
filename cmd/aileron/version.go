package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func newVersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which aileron this is",
		Example: "  aileron version --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.JSON {
				return a.PrintJSON(map[string]string{
					"version": b.Release, "details": b.Details, "time": b.Time, "go": runtime.Version(),
				})
			}
			fmt.Fprintln(a.Stdout, "aileron version "+b.String())
			return nil
		},
	}
}

// version is the release that -ldflags "-X main.version=…" names, and "" in other builds.
var version string

// testOnlyWorkFactor is the scrypt work factor of the program that the
// end-to-end tests build with -ldflags "-X main.testOnlyWorkFactor=…". It is
// empty in a release, in which nothing sets it: see [vault.TestOnlyWorkFactor].
// Signing keys that this program makes are cheap, too.
var testOnlyWorkFactor string

// thisBuild returns what this program was built from.
func thisBuild() cli.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := describeBuild(version, info)
	b.Cheap = testOnlyWorkFactor != ""
	return b
}

// describeBuild returns what a program was built from: set is the release that its linker was given, if any. go
// install names a released module by its version, and go build the commit of the work tree.
func describeBuild(set string, info *debug.BuildInfo) cli.Build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := cli.Build{Release: cli.DevVersion, Time: settings["vcs.time"]}
	switch revision := settings["vcs.revision"]; {
	case set != "":
		b.Release = set
	case isRelease(info.Main.Version):
		b.Release = strings.TrimPrefix(info.Main.Version, "v")
	case revision != "":
		b.Details = "commit " + revision[:min(len(revision), 12)]
		if settings["vcs.modified"] == "true" {
			b.Details += ", modified"
		}
	}
	return b
}

// isRelease reports whether a module's version is a release's, and not one that the go command makes up for a commit.
func isRelease(version string) bool {
	return regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?$`).MatchString(version)
}
