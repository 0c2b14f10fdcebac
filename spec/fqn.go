package spec

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// FQN is a connector's fully qualified name, scheme://owner/path. It identifies
// the connector and grants nothing.
type FQN string

// localScheme begins the names of connectors that were made on this machine.
const localScheme = "local"

// IsLocal reports whether the connector was made on this machine, for it alone.
func (f FQN) IsLocal() bool { return strings.HasPrefix(string(f), localScheme+"://") }

// ParseFQN reads a name that begins with github://, gitlab://, hub:// or local://,
// in lower case, followed by at least an owner and a name. Segments are letters, digits,
// dots, hyphens and underscores, and begin with a letter or digit.
func ParseFQN(s string) (FQN, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "github" && scheme != "gitlab" && scheme != "hub" && scheme != localScheme {
		return "", fmt.Errorf("read the connector name %q: it does not begin with "+
			"github://, gitlab://, hub:// or local://", s)
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(s) > 200 {
		return "", fmt.Errorf("read the connector name %q: it is not scheme://owner/name", s)
	}
	for _, p := range parts {
		if !isName(p, "._-") {
			return "", fmt.Errorf("read the connector name %q: the part %q is not a plain name", s, p)
		}
	}
	return FQN(s), nil
}

// Service returns the last part of the name, after which bindings are named.
func (f FQN) Service() string { return string(f[strings.LastIndexByte(string(f), '/')+1:]) }

// Owner returns the first part after the scheme.
func (f FQN) Owner() string {
	_, rest, _ := strings.Cut(string(f), "://")
	owner, _, _ := strings.Cut(rest, "/")
	return owner
}

// isVersion reports whether s is strict SemVer 2.0.0 without a leading v.
func isVersion(s string) bool {
	core, _, _ := strings.Cut(s, "+")
	core, _, _ = strings.Cut(core, "-")
	return len(s) <= 100 && semver.IsValid("v"+s) && strings.Count(core, ".") == 2 // semver also takes v1 and v1.2
}

// IsPrerelease reports whether a version is a pre-release, such as 2.0.0-rc.1.
func IsPrerelease(version string) bool { return semver.Prerelease("v"+version) != "" }

// CompareVersions returns -1, 0 or +1 for two strict SemVer strings. Build
// metadata, which SemVer leaves without order, decides ties by its bytes, so
// that the newest of a list is always the same one.
func CompareVersions(a, b string) int {
	if c := semver.Compare("v"+a, "v"+b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
