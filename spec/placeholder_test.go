package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlaceholdersAreNamesOfCredentials(t *testing.T) {
	diagnose := func(env, value string) []*Diagnostic {
		_, err := Parse([]byte(strings.Replace(specWith(goodFields), `"tools"`,
			fmt.Sprintf(`"placeholders": [{"env": %q, "value": %q}], "tools"`, env, value), 1)))
		return Diagnostics(err)
	}
	refused := func(why string, names ...string) {
		t.Helper()
		for _, env := range names {
			list := diagnose(env, "x")
			if len(list) != 1 || list[0].Path != "placeholders[0].env" || !strings.Contains(list[0].Message, why) {
				t.Errorf("the placeholder %s: %v, want %q", env, list, why)
			}
		}
	}
	refused("names that begin like this steer programs", "HTTPS_PROXY", "NO_PROXY", "HTTPS_PROXY_USER",
		"ALL_PROXY_PASSWORD", "LD_PRELOAD", "LD_AUDIT_KEY", "AILERON_TOKEN", "AILERON_SESSION_ID",
		"SSL_CERT_FILE", "SSL_KEY", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "GIT_SSH_COMMAND", "GIT_SSH_KEY", "GIT_TOKEN",
		"PYTHONPATH", "PYTHON_KEY", "BASH_ENV", "BASH_FUNC_ID", "PROMPT_COMMAND", "JAVA_TOOL_OPTIONS", "SSH_KEY", "SUDO_USER",
		"XDG_SESSION_ID")
	refused("must end in _TOKEN, _KEY, _SECRET, _PASSWORD, _ID, _USER, _ACCOUNT", "PATH", "HOME", "ENV", "IFS", "USER",
		"TOKEN", "KEY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "RUBYOPT", "OPENAI_BASE_URL", "GH_HOST", "GH_TOKENS",
		"GH_TOKEN_FILE", "EDITOR", "PAGER", "LANG", "CI", "TMPDIR", "PGSSLMODE", "AWS_PROFILE", "AWS_CONFIG_FILE",
		"ELECTRON_RUN_AS_NODE", "CLAUDE_CODE_SHELL", "GOINSECURE", "EVIL_KEY_PATH", "X_TOKEN_")
	refused("is not a variable's name in upper case", "gh_token", "1X_TOKEN", "A-B_TOKEN", "GH.TOKEN", "GH_TOKEN=X",
		"G\u0397_TOKEN", strings.Repeat("A", 100)+"_TOKEN", "_TOKEN", "_KEY", "_TOKEN_")
	for _, env := range []string{"GH_TOKEN", "GITHUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TRACKER_TOKEN",
		"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "TWINE_PASSWORD", "JIRA_USER",
		"STRIPE_SECRET", "SNOWFLAKE_ACCOUNT", "NPM_TOKEN", "NODE_AUTH_TOKEN", "CARGO_REGISTRY_TOKEN", "DOCKER_PASSWORD"} {
		if list := diagnose(env, "x"); len(list) > 0 {
			t.Errorf("the placeholder %s is refused: %v", env, list)
		}
	}
	for _, value := range []string{"$(id)", "() { :; }", "a b", "`id`", "a\nb", "", strings.Repeat("a", 257)} {
		if list := diagnose("GH_TOKEN", value); len(list) == 0 || list[0].Path != "placeholders[0].value" {
			t.Errorf("the value %q: %v, want a diagnostic at its place", value, list)
		}
	}
}
