# What follows is the same in every command. It needs a POSIX shell, and wget or curl.
set -u
umask 077
LC_ALL=C
# A project's own wget is not asked before the system's.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}
export PATH

# refuse ends the command with an exit code, what failed, and what to do about it.
refuse() {
	printf '%s: %s\nhint: %s\n' "$name" "$2" "$3" >&2
	exit "$1"
}

# quoted prints a word of the command line if it is a plain one: the caller may have it from elsewhere.
quoted() {
	case $1 in
	'' | *[!A-Za-z0-9._:=-]*) printf 'an argument' ;;
	*) printf '"%.64s"' "$1" ;;
	esac
}

operation='' second='' words='' unsafe='' asks='' args='' given='' json='' help=''
files='' sizes='' total=0 opened=5 encode=''

# add_file opens the file of NAME=PATH, and adds it to those that follow the call.
add_file() {
	input=${1%%=*} path=${1#*=}
	case $input in
	"$1" | '' | *[!]A-Za-z0-9._:[-]*) refuse 2 '--file is not NAME=PATH' "$name OPERATION --help names the files" ;;
	esac
	[ -n "$operations" ] || refuse 2 'an action takes no files' "$name --help lists its arguments"
	hint='name a file of this sandbox'
	if [ -d "$path" ]; then
		refuse 2 "the file $input is a directory" 'name a file, such as an archive of it'
	elif [ ! -e "$path" ]; then
		refuse 2 "the file $input does not exist in this sandbox" "$hint"
	elif [ ! -f "$path" ]; then
		refuse 2 "the file $input is not a regular file" 'copy what it has to a file first'
	elif [ ! -r "$path" ]; then
		refuse 2 "the file $input cannot be read" "$hint"
	fi
	base=${path##*/}
	[ "$(printf %s "$base" | tr -d '[:cntrl:]')" = "$base" ] ||
		refuse 2 "the name of the file $input has a control character or a line break" 'rename it'
	case $base in *[\"\\]*) base=$(printf %s "$base" | sed 's/[\\"]/\\&/g') ;; esac
	# The descriptor is the file from here on, whatever becomes of the path. A shell has those of one digit.
	opened=$((opened + 1))
	case $opened in
	6) exec 6<"$path" ;;
	7) exec 7<"$path" ;;
	8) exec 8<"$path" ;;
	9) exec 9<"$path" ;;
	*) refuse 2 'there are more than four files' 'send the request with an HTTP client' ;;
	esac
	size=$(stat -L -c %s "/proc/self/fd/$opened" 2>/dev/null || wc -c <"$path") ||
		refuse 1 "the size of the file $input cannot be read" "$hint"
	size=$((size))
	files="$files${files:+,}{\"input\":\"$input\",\"filename\":\"$base\",\"size\":$size}"
	sizes="$sizes $size" total=$((total + size))
}

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) help=1 ;;
	--json) json=1 ;;
	--args)
		[ $# -ge 2 ] || refuse 2 '--args has no value' "--args takes a JSON object, or - for standard input"
		shift
		args=$1 given=1
		;;
	--args=*) args=${1#--args=} given=1 ;;
	--file)
		[ $# -ge 2 ] || refuse 2 '--file has no value' "--file takes NAME=PATH: $name OPERATION --help names the files"
		shift
		add_file "$1"
		;;
	--file=*) add_file "${1#--file=}" ;;
	-*) refuse 2 "$(quoted "$1") is not a flag" "$name --help lists them" ;;
	*)
		[ -n "$operations" ] ||
			refuse 2 "$(quoted "$1") is not expected" "pass the arguments as one JSON object: $name --help"
		if [ -z "$words" ]; then operation=$1; else second=$(quoted "$1"); fi
		words="$words${words:+,}\"$1\""
		case $1 in *[\"\\]*) unsafe=1 ;; esac
		;;
	esac
	shift
done
if [ -n "$words" ] && [ -z "$help" ]; then
	is_operation "$operation" ||
		refuse 2 "$(quoted "$operation") is not an operation of $name" \
			"$name --help lists them, $name --help WORD... searches"
	[ -z "$second" ] ||
		refuse 2 "$second follows the operation" "pass the arguments as one JSON object: $name $operation --help"
elif [ -n "$operations" ] && [ -z "$help" ]; then
	refuse 2 'no operation is named' "$name --help lists them"
elif [ -n "$words" ]; then
	# The session is asked for what is not in this file: a search, a group, or an operation of a tool with many.
	if [ -n "$second" ] || [ -z "$listed" ] || ! is_operation "$operation"; then
		[ -z "$unsafe" ] || refuse 2 'a word has a quote or a backslash' "$name --help WORD... takes other words"
		asks=1 help='' json='' given='' operation='' endpoint=connector-operations/help
	fi
fi
title="$name${operation:+ $operation}"

# send posts a request, whose body is given by a flag of wget's and its value.
send() {
	if [ -n "$use_wget" ]; then
		# The system's configuration, such as a proxy in /etc/wgetrc, is for other requests. BusyBox's wget has none.
		case $version in 'GNU Wget'*) set -- --no-config "$@" ;; esac
		[ -z "$token" ] || set -- "$@" --header "Authorization: Bearer $token"
		wget -q -t 1 -O - --header "Accept: $accept" --header "Content-Type: $type" "$@" "$url"
	else
		case $1 in
		--post-file) set -- --data-binary "@$2" ;;
		--post-data) set -- --data-raw "$2" ;;
		*) set -- -X POST -T - ;;
		esac
		curl -q -sS -H "Accept: $accept" -H "Content-Type: $type" -H 'Expect:' "$@" "$url"
	fi
}

# call_and_files prints the call as a line, and the files behind it.
call_and_files() {
	begin "$operation" &&
		if [ "$args" = - ]; then cat; else printf %s "${args:-"{}"}"; fi | tr '\n\r' '  ' &&
		printf ',"files":[%s]}\n' "$files" || return
	if [ -n "$encode" ]; then contents | base64; else contents; fi
}

# contents prints the files, as long as they were.
contents() {
	number=6
	for size in $sizes; do
		head -c "$size" <&"$number" || return
		number=$((number + 1))
	done
}

# receive reads a response: a line "EXIT STATUS AUDIT-ID KIND", and either the upstream's response or a denial, which is
# its message on one line and an error object.
receive() {
	exit_code='' status='' audit_id='' kind='' message=''
	IFS=' ' read -r exit_code status audit_id kind || :
	case $exit_code in
	0 | 1 | 2 | 75) ;;
	*)
		cat >/dev/null
		return 69
		;;
	esac
	if [ "$kind" = denial ]; then
		IFS= read -r message || :
		if [ -n "$json" ]; then cat; else cat >/dev/null; fi
		printf '%s: %s\naudit id: %s\n' "$title" "$message" "$audit_id" >&2
		if [ "$exit_code" = 2 ]; then
			printf 'hint: %s --help lists the arguments\n' "$title" >&2
		fi
		return "$exit_code"
	fi
	cat || return
	if [ "$exit_code" != 0 ]; then
		printf '%s: the upstream responded with status %s\naudit id: %s\n' "$title" "$status" "$audit_id" >&2
	fi
	return "$exit_code"
}

# run sends the request and ends the command.
run() {
	if [ -z "${AILERON_API_URL-}" ] || [ -z "${AILERON_TOKEN-}" ]; then
		refuse 1 'AILERON_API_URL and AILERON_TOKEN are not set' \
			'run it in a sandbox of aileron, with its environment'
	fi
	use_wget='' token='' version=''
	if command -v wget >/dev/null; then
		use_wget=1
		version=$(LC_ALL=C wget --no-config --version 2>/dev/null)
	elif ! command -v curl >/dev/null; then
		refuse 1 'this image has neither wget nor curl' \
			'install one of them in the image'
	fi
	[ -z "$given" ] || [ -n "$args" ] || refuse 2 '--args is empty' "$title --help has an example"
	accept=application/vnd.aileron.shim.v1${json:++json} type=application/json
	if [ -n "$files" ]; then
		type=application/vnd.aileron.call.v1
		# curl sends what it reads from a pipe, and wget a file. BusyBox's holds all of it in memory, up to a NUL.
		if command -v curl >/dev/null; then use_wget=''; fi
		case $use_wget/$version in
		/* | */'GNU Wget '*) ;;
		*)
			encode=1 type=application/vnd.aileron.call.base64.v1
			[ "$total" -le 67108864 ] ||
				refuse 1 'the files have more than 64 MiB, which the wget of this image would hold in memory' \
					'install curl in the image'
			command -v base64 >/dev/null ||
				refuse 1 'the wget of this image cannot send a file, and it has no base64' 'install curl in the image'
			;;
		esac
	fi
	url=http://aileron.internal/v1/$endpoint
	# The clients' own configuration, such as ~/.wgetrc, is for other requests.
	unset http_proxy ALL_PROXY all_proxy no_proxy NO_PROXY WGETRC
	export HOME=/nonexistent

	# Every user of the host may read the arguments of a process, so the token is in none if that can be helped. A
	# sandbox that is sealed sends none: no other program can reach the session that way. Elsewhere a client has it in its
	# environment, as that of a proxy, with which BusyBox's wget cannot post, and which Wget2 does not read.
	case $AILERON_API_URL in
	http://aileron.internal/*) ;;
	*)
		if [ -n "$use_wget" ]; then
			case $version in
			'GNU Wget 1.'*) ;;
			*) if command -v curl >/dev/null; then use_wget=''; else token=$AILERON_TOKEN url=$AILERON_API_URL/$endpoint; fi ;;
			esac
		fi
		if [ -z "$token" ]; then
			http_proxy=${AILERON_API_URL#http://}
			export http_proxy="http://aileron:$AILERON_TOKEN@${http_proxy%%/*}"
		fi
		;;
	esac

	# The kernel takes at most 128 KiB in one argument of a program (MAX_ARG_STRLEN of Linux).
	if [ -n "$asks" ]; then
		set -- --post-data "$(ask "$words")"
	elif [ -n "$files" ] && [ -z "$use_wget" ]; then
		set -- --pipe
	elif [ -n "$files" ] || [ "$args" = - ] || [ ${#args} -gt 65536 ]; then
		set -C
		for file in "${TMPDIR:-/tmp}/.aileron-$$" "/tmp/.aileron-$$" "/dev/shm/.aileron-$$" ''; do
			# shellcheck disable=SC2188 # only to make it, as a file of this process
			[ -n "$file" ] && { >"$file"; } 2>/dev/null && break
		done
		set +C
		[ -n "$file" ] || refuse 1 'the arguments cannot be kept: no temporary file can be made' \
			'set TMPDIR to a directory that is writable'
		# It has no name from here on, so that nothing is left of it, however this command ends. No trap removes it: a
		# shell waits for its client before it runs one.
		exec 5>"$file"
		rm -f "$file"
		if [ -n "$files" ]; then
			call_and_files
		else
			begin "$operation" &&
				if [ "$args" = - ]; then cat; else printf %s "$args"; fi && printf '}'
		fi >&5 ||
			refuse 1 'the arguments cannot be read, or the temporary file is full' 'set TMPDIR to a directory with room'
		set -- --post-file /proc/self/fd/5
	else
		set -- --post-data "$(begin "$operation")${args:-"{}"}}"
	fi

	exec 3>&1
	ends=$({
		{
			if [ "$1" = --pipe ]; then call_and_files 2>/dev/null | send "$@"; else send "$@"; fi
			printf 'sent %s.' "$?" >&4
		} | {
			receive
			printf 'received %s.' "$?" >&4
		}
	} 4>&1 >&3)
	received=${ends##*received }
	sent=${ends##*sent }
	received=${received%%.*} sent=${sent%%.*}
	case $received/$sent in
	69/*) refuse 1 "the session did not respond as expected (its client ended with $sent)" \
		'it may have ended; aileron session list on the host shows it' ;;
	0/0) ;;
	0/*) refuse 1 'the response broke off' 'aileron audit tail on the host shows why' ;;
	esac
	exit "$received"
}

[ -n "$help" ] || run
