#!/bin/bash
# Runs the clients of the catalogue's services, or those that are named, side by side, in a sandbox, each with the
# project's own settings. Prints a line for each: "ok NAME", or "failed NAME" and what it printed.
set -u
project=$PWD
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_TERMINAL_PROMPT=0 LC_ALL=C.UTF-8

# try runs a client, which fails with the first of its commands that does. So a client is a list of commands: set -e
# counts neither what stands before && nor what follows an exclamation mark, nor anything in a condition.
try() {
	local name=$1 dir
	dir=$(mktemp -d)
	(
		set -euo pipefail
		export HOME=$dir
		cd "$dir"
		for own in .npmrc .cargo .mvn .venv; do [ ! -e "$project/$own" ] || cp -r "$project/$own" .; done
		"$name"
	) >"$dir.log" 2>&1 </dev/null &
	if wait $!; then echo "ok $name"; else
		echo "failed $name"
		tail -n 25 "$dir.log"
	fi
}

has() { grep -q -- "$1" "$2" || { echo "there is no $1 in $2:"; cat "$2"; return 1; }; }
get() { curl -fsSL "$@"; }
fails() { if "$@"; then echo "$* works"; return 1; fi; }
# patient repeats a command while it fails with a time-out of its own that no setting raises, as Go's ten seconds for a
# handshake, on a machine with much else to do.
patient() {
	for _ in 1 2 3 4 5; do
		"$@" >patient 2>&1 && return
		cat patient
		grep -q 'TLS handshake timeout\|gnutls_handshake() failed' patient || return 1
	done
	return 1
}
denied() { # as a denial of the proxy, not of the server
	curl -sS -o out "$@"
	has 'operation_not_matched\|query_not_declared' out
}

work_with_git() {
	patient git clone -q "$1" c
	cd c
	has 'the first file' README
	git checkout -qb "$2"
	echo "of the sandbox" >new
	git add new
	git commit -qm new
	git push -q origin "$2"
	git fetch -q
	git ls-remote --exit-code origin "refs/heads/$2"
}

git_github() { work_with_git https://github.com/acme/tool.git of-git; }
git_gitlab() { work_with_git https://gitlab.com/acme/tool.git of-gitlab; }
git_gitlab_subgroup() { work_with_git https://gitlab.com/acme/sub/group/tool.git of-git; }
gh_clone() {
	patient gh repo clone acme/tool c
	has 'the first file' c/README
}
gh_api() {
	patient gh api user
	has octo patient
}
gh_release() {
	patient gh release download v1 -R acme/tool -p tool.txt
	has 'of a release' tool.txt
}
gh_logs() {
	patient gh run view 7 -R acme/tool --log
	has 'of a log' patient
	patient gh run download 7 -R acme/tool -n tool
	has 'of an artifact' report.txt
}
releases() {
	get https://github.com/acme/tool/releases/download/v1/tool.txt >out
	has 'of a release' out
}
archives() {
	get https://github.com/acme/tool/archive/refs/heads/main.tar.gz >out
	has 'of an archive' out
}
raw() {
	get https://raw.githubusercontent.com/acme/tool/main/docs/README >out
	has 'of a file' out
}
work_with_lfs() {
	git config --global lfs.tlstimeout 300
	git config --global lfs.activitytimeout 300
	git clone -q "$1" c
	cd c
	git lfs install --local
	git lfs track '*.bin'
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 17\n' \
		"$(echo 'of an LFS object' | sha256sum | cut -d ' ' -f 1)" >large.bin
	git -c filter.lfs.clean=cat add .
	git commit -qm pointer
	rm large.bin
	git lfs fetch
	git checkout large.bin
	has '^of an LFS object$' large.bin
}
lfs_github() {
	work_with_lfs https://github.com/acme/tool.git
	denied -T README 'https://github-cloud.githubusercontent.com/alambic/media/1/ab/cd?X-Amz-Signature=s'
}
lfs_gitlab() { work_with_lfs https://gitlab.com/acme/tool.git; }

npm_ci() {
	echo '{"name":"p","version":"1.0.0"}' >package.json
	npm install --no-fund --no-update-notifier left @acme/right
	test -f node_modules/@acme/right/blob
	has registry.npmjs.org package-lock.json
	rm -rf node_modules .npm
	npm ci --no-fund --no-update-notifier
	test -f node_modules/left/blob
	fails npm publish --no-update-notifier
}
bun_add() {
	echo '{"name":"p"}' >package.json
	bun add @acme/right
	test -f node_modules/@acme/right/blob
}
pip_download() {
	PIP_CONFIG_FILE=$PWD/.venv/pip.conf python3 -m pip download --no-cache-dir acme-tool
	ls acme_tool-1.0-py3-none-any.whl
}
go_mod() {
	export GOPATH=$HOME/go GOFLAGS=-modcacherw GOSUMDB
	GOSUMDB=$(cat "$project/sumdb.key")
	patient go mod download -x github.com/acme/Mod@v1.0.0
	test -f go/pkg/mod/github.com/acme/\!mod@v1.0.0/mod.go
	patient go mod download golang.org/acme/tool@v1.0.0 # the host of its archive is another
	ls go/pkg/sumdb || ls go/pkg/mod/cache/download/sumdb
	fails go mod download data.attacker.example/mod@v1.0.0
}
cargo_fetch() {
	mkdir src
	: >src/lib.rs
	printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nacme-tool = "1"\n' >Cargo.toml
	CARGO_HOME=$HOME/cargo cargo fetch
	test -f cargo/registry/src/*/acme-tool-1.0.0/blob
}
gem_install() {
	gem install --no-document --install-dir gems acme-tool
	test -f gems/gems/acme-tool-1.0.0/lib/acme.rb
}
bundle_install() {
	printf 'source "https://rubygems.org"\ngem "acme-tool"\n' >Gemfile
	BUNDLE_PATH=$PWD/gems bundle install
	has 'acme-tool (1.0.0)' Gemfile.lock
	ls gems/ruby/*/gems/acme-tool-1.0.0/lib/acme.rb
	denied -X DELETE 'https://rubygems.org/api/v1/gems/yank'
}
# A parent is read, and an extension is loaded, before Maven needs a plugin: those of its life cycle have hundreds of
# dependencies.
mvn_validate() {
	cat >pom.xml <<'END'
<project><modelVersion>4.0.0</modelVersion><artifactId>p</artifactId><packaging>pom</packaging>
<parent><groupId>com.acme</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent>
<build><extensions><extension><groupId>com.acme</groupId><artifactId>tool</artifactId><version>1.0</version></extension>
</extensions></build></project>
END
	mvn -B -ntp --strict-checksums -Dmaven.repo.local="$PWD/m2" validate
	ls m2/com/acme/tool/1.0/tool-1.0.jar
	get https://repo1.maven.org/maven2/com/acme/tool/1.0/tool-1.0.pom.sha1
	denied -T pom.xml https://repo1.maven.org/maven2/com/acme/tool/1.0/tool-1.0.pom
}
apt_get() {
	local apt
	mkdir -p state/lists/partial cache/archives/partial
	: >status
	echo "deb [trusted=yes] $1 bookworm main" >sources.list
	apt="apt-get -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$PWD/state"
	apt="$apt -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root"
	$apt update
	$apt download acme-tool
	has 'of an archive' acme-tool_1.0~rc1_all.deb
}
apt_debian() { apt_get http://deb.debian.org/debian; }
apt_debian_https() { apt_get https://security.debian.org/debian-security; }
apt_ubuntu() { apt_get http://archive.ubuntu.com/ubuntu; }
# Debian has no apk: these are its requests.
apk_requests() {
	get http://dl-cdn.alpinelinux.org/alpine/v3.22/main/x86_64/APKINDEX.tar.gz >out
	has 'of Alpine' out
	get https://dl-cdn.alpinelinux.org/alpine/v3.22/community/x86_64/tool-1.0-r0.apk >out
	has 'of Alpine' out
}

anthropic() { node24 "$project/models.mjs" anthropic; }
openai() { node24 "$project/models.mjs" openai; }
gemini() {
	node24 "$project/models.mjs" gemini
	denied -d '{}' https://generativelanguage.googleapis.com/v1beta/models/gemini:batchGenerateContent
}
google() {
	get 'https://gmail.googleapis.com/gmail/v1/users/me/messages?q=in:inbox&alt=json' >out
	has 'of the mail' out
	get -d '{"raw":"UmU"}' -H content-type:application/json \
		https://gmail.googleapis.com/gmail/v1/users/me/messages/send >out
	get 'https://www.googleapis.com/calendar/v3/calendars/a%40acme.example/events?singleEvents=true' >out
	has 'of the calendar' out
	denied -X DELETE https://gmail.googleapis.com/gmail/v1/users/me/messages/m1
	curl -sS -o out -d grant_type=refresh_token https://oauth2.googleapis.com/token
	has host_not_allowed out
}
linear() {
	get -d '{"query":"{viewer{name}}"}' -H "authorization: $LINEAR_API_KEY" -H content-type:application/json \
		https://api.linear.app/graphql >out
	has 'of Linear' out
	denied -d grant_type=refresh_token https://api.linear.app/oauth/token
}
slack() {
	get 'https://slack.com/api/conversations.history?channel=C1&limit=5' -H "authorization: Bearer $SLACK_BOT_TOKEN" >out
	has 'of the channel' out
	get -d 'channel=C1' https://slack.com/api/conversations.history >out
	get -d '{"channel":"C1","text":"hello"}' -H content-type:application/json https://slack.com/api/chat.postMessage >out
	denied -d 'channel=C1&ts=1.2' https://slack.com/api/chat.delete
	denied -d token=x https://slack.com/api/auth.revoke
}
openrouter() { node24 "$project/models.mjs" openrouter; }
local_openai() { node24 "$project/models.mjs" local; }

mapfile -t clients < <(declare -F | awk '{print $3}' |
	grep -vxE 'try|has|get|fails|patient|denied|apt_get|work_with_git|work_with_lfs')
[ $# = 0 ] || clients=("$@")
echo "clients ${#clients[@]}"
for client in "${clients[@]}"; do
	try "$client" &
done
wait
