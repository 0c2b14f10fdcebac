#!/bin/bash
# What npm, Go and apt do in a project, for a session that learns and for one under what was learnt. Prints what a
# further host answers.
set -euo pipefail
project=$PWD
HOME=$(mktemp -d)
export HOME LC_ALL=C.UTF-8
cd "$HOME"

echo '{"name":"p","version":"1.0.0"}' >package.json
npm install --no-audit --no-fund --no-update-notifier left @acme/right
test -f node_modules/@acme/right/blob

export GOPATH=$HOME/go GOFLAGS=-modcacherw GOSUMDB
GOSUMDB=$(cat "$project/sumdb.key")
for _ in 1 2 3 4 5; do # Go has ten seconds for a handshake, on a machine with much else to do
	go mod download github.com/acme/Mod@v1.0.0 golang.org/acme/tool@v1.0.0 && break
done
test -f go/pkg/mod/github.com/acme/\!mod@v1.0.0/mod.go

mkdir -p state/lists/partial cache/archives/partial
: >status
echo "deb [trusted=yes] http://deb.debian.org/debian bookworm main" >sources.list
apt() {
	apt-get -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$PWD/state" \
		-o Dir::State::status="$PWD/status" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@"
}
apt update
apt download acme-tool
test -f acme-tool_1.0~rc1_all.deb

[ ! -e "$project/learnt" ] || curl -sS https://pypi.org/simple/acme-tool/
echo all worked
