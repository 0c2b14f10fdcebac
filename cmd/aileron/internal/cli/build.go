package cli

import "strings"

// Build is what this program was built from.
type Build struct {
	Release string // a version without the v, or DevVersion
	Details string // how a build that is not a release differs from others, "" if that is not known
	Time    string // of the commit, in RFC 3339, or ""
	Cheap   bool   // a program of the tests, whose vaults are cheap to open
}

// String returns what --version prints. A program that was built for the tests is named as such: it must not be
// mistaken for a release.
func (b Build) String() string {
	details := b.Details
	if b.Cheap {
		details = strings.TrimPrefix(details+"; for tests only: its vaults are cheap to open", "; ")
	}
	if details == "" {
		return b.Release
	}
	return b.Release + " (" + details + ")"
}

// DevVersion is the version of a build that is not a release. The images of such builds have it in their tags.
const DevVersion = "0.1.0-dev"
