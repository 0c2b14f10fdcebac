#!/bin/sh
# Runs a command as a user who has rights to nothing but containers of his
# own. The machine does not learn of him: the files that name him are seen in
# this process's mount namespace only.
#
#   rootless.sh DIR UID COMMAND...
set -eu
dir=$1 uid=$2
shift 2
if [ "${AILERON_ROOTLESS_APART:-}" = "" ]; then
	AILERON_ROOTLESS_APART=1 exec unshare --mount --propagation private "$0" "$dir" "$uid" "$@"
fi
mkdir -p "$dir/etc" "$dir/home" "$dir/run" "$dir/tmp"
{ cat /etc/passwd && echo "sealed:x:$uid:$uid::$dir/home:/bin/sh"; } >"$dir/etc/passwd"
{ cat /etc/group && echo "sealed:x:$uid:"; } >"$dir/etc/group"
echo "sealed:${uid}000:65536" >"$dir/etc/subuid"
cp "$dir/etc/subuid" "$dir/etc/subgid"
for name in passwd group subuid subgid; do
	mount --bind "$dir/etc/$name" "/etc/$name"
done
# Without it Podman 4 copies the whole image for each container.
mkdir -p "$dir/home/.config/containers"
printf '[storage]\ndriver = "overlay"\n' >"$dir/home/.config/containers/storage.conf"
chown -R "$uid:$uid" "$dir/home/.config"
chown "$uid:$uid" "$dir/home" "$dir/run" "$dir/tmp"
chmod 700 "$dir/home" "$dir/run"
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups env -i PATH="$PATH" USER=sealed LOGNAME=sealed \
	HOME="$dir/home" XDG_RUNTIME_DIR="$dir/run" TMPDIR="$dir/tmp" \
	AILERON_HOME="${AILERON_HOME:-}" AILERON_VAULT_PASSPHRASE="${AILERON_VAULT_PASSPHRASE:-}" "$@"
