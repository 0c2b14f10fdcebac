# Passes on the notes on the sandbox, as what Goose reads for each session, unless there is something already; names the
# key of Gemini as Goose does; and keeps it from looking for a keyring, of which a sandbox has none.
hints=${XDG_CONFIG_HOME:-${HOME:-/home/agent}/.config}/goose/.goosehints
if [ -r /etc/aileron/notes.md ] && [ ! -e "$hints" ] && [ ! -L "$hints" ]; then
	mkdir -p "${hints%/*}" && ln -s /etc/aileron/notes.md "$hints"
fi 2>/dev/null
unset hints
export GOOSE_DISABLE_KEYRING=1
if [ -n "${GEMINI_API_KEY-}" ] && [ -z "${GOOGLE_API_KEY-}" ]; then
	export GOOGLE_API_KEY="$GEMINI_API_KEY"
fi
