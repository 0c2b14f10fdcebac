# Answers what Claude Code asks at its first start: the theme, the notes on
# security, the trust of the project, and whether to use the key of the
# environment, which is a placeholder; and, in an unattended session, its disclaimer
# about that, which any other session takes back. Its file has that, with the rest of its
# state, so only these answers are changed in it. One that is no JSON is left as it
# is, and so is anything that is no file: a session before this one may have
# written it to stop the next.
: "${CLAUDE_CONFIG_DIR:=${HOME:-/home/agent}/.claude}"
export CLAUDE_CONFIG_DIR
mkdir -p "$CLAUDE_CONFIG_DIR"
state=$CLAUDE_CONFIG_DIR/.claude.json
[ -e "$state" ] || printf '{}\n' >"$state"
if [ -f "$state" ] && answered=$(mktemp "$state.XXXXXX"); then
	jq --arg key "${ANTHROPIC_API_KEY-}" --arg dir "$PWD" '
		.hasCompletedOnboarding = true
		| .theme //= "dark"
		| .projects[$dir].hasTrustDialogAccepted = true
		| if env.AILERON_UNATTENDED == "1" then .bypassPermissionsModeAccepted = true
			else del(.bypassPermissionsModeAccepted) end
		| if $key == "" then . else
			.customApiKeyResponses.approved |= ((. // []) + [$key[-20:]] | unique)
		end' "$state" >"$answered" && mv -f "$answered" "$state" || rm -f "$answered"
fi 2>/dev/null
unset state answered
