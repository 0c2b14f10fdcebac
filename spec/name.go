package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"

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
		if !plain.IsName(p, "._-") {
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

// reservedTools are commands that a sandbox, its programs or a person relies on.
// A tool of that name would hide them, as shims come first on the PATH.
var reservedTools = strings.Fields(`
	sh ash bash dash zsh fish ksh csh tcsh env sudo su doas login passwd exec command eval test true false echo
	printf read cd pwd set unset export source alias trap wait jobs umask ulimit exit return if then else for while
	do done case function time kill pkill killall nohup timeout nice xargs find which whereis type hash ls cat cp mv
	rm ln mkdir rmdir mknod mktemp chmod chown chgrp chroot dd df du head tail grep egrep fgrep rg fd sed awk gawk
	mawk sort uniq wc tr cut paste join tee tar gzip gunzip bzip2 xz zstd zip unzip cpio ar install touch stat file
	date sleep seq id whoami who hostname uname ps top free uptime dirname basename readlink realpath less more vi
	vim nano ed emacs cmp diff patch strings od xxd hexdump base32 base64 md5sum sha1sum sha256sum sha512sum cksum
	stty tty script tmux screen watch crontab systemctl service reboot shutdown halt sysctl dmesg wget curl git
	git-lfs ssh ssh-add ssh-agent ssh-keygen scp sftp rsync nc ncat netcat socat telnet ftp ping dig host nslookup
	openssl gpg gpgv age apt apt-get apt-cache dpkg apk yum dnf rpm pacman brew snap pip pip3 pipx uv poetry conda
	npm npx pnpm yarn node nodejs corepack bun bunx deno tsc go gofmt cargo rustc rustup python python2 python3 perl
	ruby gem bundle php composer lua java javac jar keytool mvn gradle dotnet gcc g++ cc c++ clang ld as make cmake
	ninja gdb strace ltrace ldd ldconfig mount umount ip ifconfig route nft iptables ip6tables nsenter unshare
	setpriv capsh podman docker buildah skopeo kubectl helm busybox toybox init aileron claude codex opencode goose
	pi gh glab con prn aux nul`)

// reservedToolPrefixes are the beginnings of further such commands.
var reservedToolPrefixes = []string{"ld.", "ld-", "aileron-", "python3."}

// badToolName returns why a command cannot have that name, or "" if it can. Its
// characters alone would allow "..", "-rf" and "sh".
func badToolName(s string) string {
	lower := strings.ToLower(s)
	switch {
	case !plain.IsName(s, "._:-") || len(s) > 64:
		return "is not a command name: at most 64 letters, digits, dots, dashes, underscores and colons, " +
			"a letter or digit first"
	case slices.Contains(reservedTools, lower):
		return "is the name of a command that sandboxes need; choose another"
	case slices.ContainsFunc(reservedToolPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) }):
		return "begins like a command that sandboxes need; choose another"
	}
	return ""
}
