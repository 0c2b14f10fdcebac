package spec

import (
	"slices"
	"strings"
)

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
	case !isName(s, "._:-") || len(s) > 64:
		return "is not a command name: at most 64 letters, digits, dots, dashes, underscores and colons, " +
			"a letter or digit first"
	case slices.Contains(reservedTools, lower):
		return "is the name of a command that sandboxes need; choose another"
	case slices.ContainsFunc(reservedToolPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) }):
		return "begins like a command that sandboxes need; choose another"
	}
	return ""
}
