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
	// plainURL is a URL with which git starts no program but its own: not ext::, no host that begins with a dash, and no
	// path, because a push to a repository of this host runs the hooks of that one.
	plainURL = regexp.MustCompile(`^(https?://[A-Za-z0-9\[]|ssh://[A-Za-z0-9\[]|git@[A-Za-z0-9]|git://[A-Za-z0-9])`)
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

// maxKeys bounds the settings of one configuration that have an entry of their own: a sandbox writes it.
const maxKeys = 200

// gitSettings are the settings of a configuration that may make git run something.
type gitSettings struct {
	sums     map[string]string // a hash of the values, by name
	includes []string          // further files of settings
	hooks    []string          // directories of hooks
}

// riskySettings returns the settings of a git configuration that may make git run something. A line that is not
// understood is such a setting.
func riskySettings(data []byte) gitSettings {
	risky := gitSettings{sums: map[string]string{}}
	remotes, branches := map[string]bool{}, map[string]string{}
	section, full := "", ""
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		line := strings.Trim(string(line), " \t\r")
		switch found := sectionLine.FindStringSubmatch(line); {
		case line == "", isComment(line):
		case found != nil:
			section, full = strings.ToLower(found[1]), strings.ToLower(found[1])
			if found[2] != "" {
				full += "." + found[2]
			}
		default:
			name, value, _ := strings.Cut(line, "=")
			name, value = section+"."+strings.ToLower(strings.TrimSpace(name)), strings.Trim(value, " \t\"")
			switch key := riskyKey(section, full, line); {
			case key != "":
				risky.add(key, line)
				risky.follow(name, value)
			case name == "remote.url":
				remotes[strings.TrimPrefix(full, "remote.")] = true
			case name == "branch.remote":
				branches[full+".remote"] = value
			}
		}
	}
	// Git takes the name of a remote that has no URL for a path, and a push there runs that repository's hooks.
	for key, remote := range branches {
		if remote != "." && !remotes[remote] {
			risky.add(key, remote)
		}
	}
	return risky
}

// add adds a setting by its name and its line.
func (g *gitSettings) add(key, line string) {
	if _, known := g.sums[key]; !known && len(g.sums) >= maxKeys {
		key = "and more"
	}
	g.sums[key] = sumOf([]byte(g.sums[key] + line))
}

// follow notes a file or a directory that a setting names.
func (g *gitSettings) follow(name, value string) {
	switch {
	case len(g.includes)+len(g.hooks) >= maxFollowed || value == "":
	case name == "core.hookspath":
		g.hooks = append(g.hooks, value)
	case name == "include.path" || name == "includeif.path":
		g.includes = append(g.includes, value)
	}
}

// isComment reports whether git takes the whole line for a comment, however it continues.
func isComment(line string) bool { return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") }

// riskyKey returns the name of the setting in a line, "" if it is harmless.
func riskyKey(section, full, line string) string {
	found := settingLine.FindStringSubmatch(line)
	if found == nil {
		return fmt.Sprintf("%.80s (%.40s)", full, line)
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
	return fmt.Sprintf("%.200s.%.80s", full, key)
}

// canonical returns settings in a form that does not depend on their order.
func canonical(settings map[string]string) []byte {
	var out bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&out, "%s\x00%s\n", key, settings[key])
	}
	return out.Bytes()
}
