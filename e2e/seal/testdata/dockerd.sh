#!/bin/sh
# Docker's daemon for the user of rootless.sh, under rootlesskit. It has no
# bridge and no rules: the boxes need neither.
set -eu
if [ "${1:-}" != inside ]; then
	echo '{}' >"$HOME/daemon.json"
	exec rootlesskit --state-dir="$XDG_RUNTIME_DIR/kit" --net=host --copy-up=/etc --copy-up=/run \
		--propagation=rslave --pidns "$0" inside
fi
rm -f /run/docker /run/containerd /run/xtables.lock # links to the machine's
limit=$(ulimit -Hn)
export TMPDIR="$XDG_RUNTIME_DIR" # where its containerd writes its stacks when it is slow to answer
exec dockerd --rootless --data-root "$HOME/docker" --exec-root "$XDG_RUNTIME_DIR/docker" \
	--pidfile "$XDG_RUNTIME_DIR/docker.pid" \
	--host "unix://$XDG_RUNTIME_DIR/docker.sock" --config-file "$HOME/daemon.json" \
	--default-ulimit "nofile=$limit:$limit" \
	--iptables=false --ip6tables=false --bridge=none
