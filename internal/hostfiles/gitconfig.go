package hostfiles

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Git has dozens of settings that name a program, and new releases add some. So those that cannot name one are known
// here, in the plainest spelling only, and every other line counts.
var (
	sectionLine = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?: "([^"\\]*)")?\]$`)
	settingLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*([^"\\#;\x00-\x1f\x7f]*))?$`)
	// plainURL is a URL with which git starts no program but its own: not ext::, and no host that begins with a dash.
	plainURL = regexp.MustCompile(
		`^(https?://[A-Za-z0-9\[]|ssh://[A-Za-z0-9\[]|git@[A-Za-z0-9]|git://[A-Za-z0-9]|[A-Za-z0-9./_][^:]*$)`)
)

// harmless are the settings, with the section before the dot and any subsection left out, of which the value cannot
// name a program.
var harmless = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true,
	"core.ignorecase": true, "core.precomposeunicode": true, "core.symlinks": true, "core.autocrlf": true,
	"core.sparsecheckout": true, "core.sparsecheckoutcone": true, "core.eol": true,
	"branch.remote": true, "branch.merge": true, "branch.rebase": true, "branch.description": true,
	"branch.vscode-merge-base": true, "branch.github-pr-owner-number": true,
	"remote.fetch": true, "remote.tagopt": true, "remote.prune": true, "remote.gh-resolved": true,
	"remote.promisor": true, "remote.partialclonefilter": true,
	"user.name": true, "user.email": true, "author.name": true, "author.email": true,
	"committer.name": true, "committer.email": true,
	"pull.rebase": true, "pull.ff": true, "push.default": true, "push.autosetupremote": true, "fetch.prune": true,
	"init.defaultbranch": true, "merge.conflictstyle": true, "rerere.enabled": true, "gc.auto": true,
	"lfs.repositoryformatversion": true, "extensions.worktreeconfig": true, "extensions.partialclone": true,
	"extensions.objectformat": true, "submodule.active": true, "index.version": true, "maintenance.auto": true,
}

// riskySettings returns the settings of a git configuration that may make git run something, with a hash of their
// values. A line that is not understood is such a setting.
func riskySettings(data []byte) map[string]string {
	risky := map[string]string{}
	section, full := "", ""
	for _, raw := range bytes.Split(data, []byte("\n")) {
		line := strings.Trim(string(raw), " \t\r")
		switch found := sectionLine.FindStringSubmatch(line); {
		case line == "", isComment(line):
		case found != nil:
			section, full = strings.ToLower(found[1]), strings.ToLower(found[1])
			if found[2] != "" {
				full += "." + found[2]
			}
		default:
			if key := riskyKey(section, full, line); key != "" {
				risky[key] = sumOf([]byte(risky[key] + line))
			}
		}
	}
	return risky
}

// isComment reports whether git takes the whole line for a comment, however it continues.
func isComment(line string) bool { return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") }

// riskyKey returns the name of the setting in a line, "" if it is harmless.
func riskyKey(section, full, line string) string {
	found := settingLine.FindStringSubmatch(line)
	if found == nil {
		return fmt.Sprintf("%s (%.40s)", full, line)
	}
	key, value := strings.ToLower(found[1]), found[2]
	name := section + "." + key
	switch {
	case harmless[name]:
		return ""
	case name == "remote.url", name == "remote.pushurl", name == "submodule.url":
		if plainURL.MatchString(value) {
			return ""
		}
	}
	return full + "." + key
}

// canonical returns settings in a form that does not depend on their order.
func canonical(settings map[string]string) []byte {
	var out bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&out, "%s\x00%s\n", key, settings[key])
	}
	return out.Bytes()
}
