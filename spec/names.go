package spec

import (
	"slices"
	"strings"
)

// reservedTools would stand before a command that a box, its programs or a
// person relies on: shims come first on the PATH.
var reservedTools = strings.Fields(`
	sh ash bash dash zsh fish ksh csh tcsh env sudo su doas login passwd exec command eval test true false echo printf read cd pwd set unset
	export source alias trap wait jobs umask ulimit exit return if then else for while do done case function time kill pkill killall nohup
	timeout nice xargs find which whereis type hash ls cat cp mv rm ln mkdir rmdir mknod mktemp chmod chown chgrp chroot dd df du head tail
	grep egrep fgrep rg fd sed awk gawk mawk sort uniq wc tr cut paste join tee tar gzip gunzip bzip2 xz zstd zip unzip cpio ar install touch
	stat file date sleep seq id whoami who hostname uname ps top free uptime dirname basename readlink realpath less more vi vim nano ed emacs
	cmp diff patch strings od xxd hexdump base32 base64 md5sum sha1sum sha256sum sha512sum cksum stty tty script tmux screen watch crontab
	systemctl service reboot shutdown halt sysctl dmesg wget curl git git-lfs ssh ssh-add ssh-agent ssh-keygen scp sftp rsync nc ncat netcat
	socat telnet ftp ping dig host nslookup openssl gpg gpgv age apt apt-get apt-cache dpkg apk yum dnf rpm pacman brew snap pip pip3 pipx uv
	poetry conda npm npx pnpm yarn node nodejs corepack bun bunx deno tsc go gofmt cargo rustc rustup python python2 python3 perl ruby gem
	bundle php composer lua java javac jar keytool mvn gradle dotnet gcc g++ cc c++ clang ld as make cmake ninja gdb strace ltrace ldd
	ldconfig mount umount ip ifconfig route nft iptables ip6tables nsenter unshare setpriv capsh podman docker buildah skopeo kubectl helm
	busybox toybox init aileron claude codex opencode goose pi gh glab con prn aux nul`)

// badToolName says why a command may not have that name, "" when it may. The
// seeds' character set alone would allow "..", "-rf" and "sh".
func badToolName(s string) string {
	lower := strings.ToLower(s)
	switch {
	case !isName(s, "._:-") || len(s) > 64:
		return "is not a command name: at most 64 letters, digits, dots, dashes, underscores and colons, a letter or digit first"
	case slices.Contains(reservedTools, lower):
		return "is the name of a command that boxes need; choose another"
	case strings.HasPrefix(lower, "ld.") || strings.HasPrefix(lower, "ld-") || strings.HasPrefix(lower, "aileron-") || strings.HasPrefix(lower, "python3."):
		return "begins like a command that boxes need; choose another"
	}
	return ""
}

// Placeholder is a harmless stand-in that makes a tool start in the box.
type Placeholder struct{ Env, Value string }

func (c *Connector) readPlaceholders(top node) {
	seen := map[string]bool{}
	for i, v := range top.list("placeholders", false, maxItems) {
		n, ok := top.f.open(v, top.item("placeholders", i), "env", "value")
		if !ok {
			continue
		}
		p := Placeholder{Env: n.text("env", true), Value: n.text("value", true)}
		switch {
		case p.Env == "":
		case !isPlaceholderName(p.Env):
			n.f.add(n.at("env"), "%q is not a variable that a connector may set", p.Env)
		case seen[p.Env]:
			n.f.add(n.at("env"), "%q is there twice", p.Env)
		}
		if len(p.Value) > 256 || !isPlainValue(p.Value) {
			n.f.add(n.at("value"), "it is not at most 256 letters, digits and any of . _ - + = : @ / ~")
		}
		seen[p.Env] = true
		c.Placeholders = append(c.Placeholders, p)
	}
}

// isPlainValue reports a string that no shell, loader or parser reads as more
// than a word.
func isPlainValue(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte("._-+=:@/~", c) < 0 {
			return false
		}
	}
	return true
}

// Variables that steer a box, a loader, a shell, an interpreter, or a
// client's proxy, trust or destination are not a connector's to set.
var (
	heldPrefixes = strings.Fields(`AILERON LD_ DYLD_ GIT_ NODE_ SSL_ BASH PYTHON PERL RUBY JAVA JDK_ _JAVA MAVEN_ GRADLE_ DENO_ BUN_ NPM_CONFIG
		CARGO_ RUST CURL_ REQUESTS_ PIP_ UV_ OPENSSL_ GODEBUG GOPROXY GOFLAGS GOPATH GOROOT GCONV_ GLIBC_ MALLOC_ LC_ XDG_ HTTP_ HTTPS_ DOCKER_
		CONTAINER_ KUBE NIX_ APT_ DPKG_ SUDO_ SSH_ GPG_ PROMPT LUA_ PHP`)
	heldSuffixes = strings.Fields(`_PROXY _BUNDLE _CAINFO _CERT _CERTS _CERTIFICATE _CA _URL _URI _HOST _HOSTS _ENDPOINT _PATH _DIR _HOME _FILE
		_OPTIONS _OPTS _FLAGS _COMMAND _SHELL _PRELOAD _CONFIG`)
	heldNames = strings.Fields(`PATH HOME USER LOGNAME SHELL IFS ENV PS1 PS2 PS4 TMPDIR TMP TEMP PWD OLDPWD TERM TZ LANG LANGUAGE EDITOR VISUAL
		PAGER LESS BROWSER MAIL HOSTALIASES LOCALDOMAIN RES_OPTIONS CDPATH FPATH ZDOTDIR INPUTRC HISTFILE IS_SANDBOX CI`)
)

func isPlaceholderName(s string) bool {
	if !isName(s, "_") || strings.ToUpper(s) != s || s[0] <= '9' || slices.Contains(heldNames, s) {
		return false
	}
	held := func(p string) bool { return strings.HasPrefix(s, p) }
	ends := func(p string) bool { return strings.HasSuffix(s, p) }
	return !slices.ContainsFunc(heldPrefixes, held) && !slices.ContainsFunc(heldSuffixes, ends)
}
