package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// withoutTheProxy is a shell script that forgets the proxy and the CA of its session, and goes on.
const withoutTheProxy = `#!/bin/sh
for v in $(env | sed -n 's/=.*//p' | grep -iE 'proxy|_CA|CERT|BUNDLE'); do unset "$v"; done
`

// An agent whose HTTP client knows neither the proxy nor the CA has its model by the endpoint in its environment, and
// no key of it. The program in its place is curl.
func TestAnAgentOnTheHostHasItsModelWithoutTheProxy(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "anthropic")
	bin := filepath.Join(u.project, "bin")
	must.Do(t, os.Mkdir(bin, 0o755))
	const body = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(withoutTheProxy+`
ask() { curl -sS --max-time 300 -w '\nstatus %{http_code}\n' -d '`+body+`' "$ANTHROPIC_BASE_URL/v1/messages" "$@"; }
ask -H "x-api-key: $ANTHROPIC_API_KEY"
ask -H "x-api-key: ${ANTHROPIC_API_KEY#*-}"
ask -H "x-api-key: $ANTHROPIC_API_KEY" -H "Origin: https://evil.example"
ask -H "x-api-key: $ANTHROPIC_API_KEY" -H "Host: evil.example"
echo "$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY"
`), 0o755))
	launch := func(env ...string) result {
		cmd := u.command(append(append([]string{"launch", "--sandbox=off", "claude"}, u.reach()...), "--", "-p", "x")...)
		cmd.Dir = u.project
		cmd.Env = append(append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH")), env...)
		return finish(t, cmd)
	}
	r := launch()
	contains(t, "the answers", r.out, "message_start", "status 200", "status 401", "token_missing_or_wrong", "status 403",
		"cross_site", "status 421", "authority_mismatch")
	seen := u.origin.Seen()
	if len(seen) != 1 || seen[0].APIKey() != modelKey || seen[0].Path != "/v1/messages" {
		t.Errorf("the provider saw %+v, want one request with its key", seen)
	}
	lines := strings.Fields(strings.TrimSpace(r.out[strings.LastIndex(strings.TrimSpace(r.out), "\n"):]))
	key := lines[len(lines)-1]
	if !strings.HasPrefix(lines[0], "http://127.0.0.1:") ||
		!strings.HasSuffix(key, "-sk-ant-placeholder-the-real-one-stays-outside") {
		t.Errorf("the agent has %q", lines)
	}
	if strings.Contains(r.out+r.err, modelKey) {
		t.Error("the agent has the key of its provider")
	}
	proxied := 0
	for _, row := range u.rows("--connector", connectors["anthropic"].FQN) {
		if row["decision"] == "proxied" && row["source"] == "daemon_request_boundary" && row["host"] == stub.Anthropic {
			proxied++
		}
	}
	if proxied != 1 {
		t.Errorf("%d rows of the endpoint, want 1", proxied)
	}
	if again := launch().out; strings.Contains(again, key) {
		t.Error("a second session has the key of the first")
	}
	mine := launch("ANTHROPIC_BASE_URL=http://127.0.0.1:1")
	contains(t, "with an endpoint of the user's", mine.out+mine.err, "http://127.0.0.1:1 sk-ant-placeholder",
		"your ANTHROPIC_BASE_URL stays")
}

// The agents that take their endpoint from the environment, without the proxy and the CA of their session: what they
// send to their model arrives by the endpoint, or not at all.
func TestAgentsOnTheHostTakeTheModelEndpoint(t *testing.T) {
	dir := recipes.OnHost(t, "claude", "opencode")
	for _, c := range []struct {
		name, agent, model string
		args               []string
	}{
		{"claude", "claude", "anthropic", []string{"-p", "say it", "--model", "sonnet"}},
		{"claude with a subscription", "claude", "anthropic-oauth", []string{"-p", "say it", "--model", "sonnet"}},
		{"opencode at Anthropic", "opencode", "anthropic", []string{"run", "-m", "anthropic/claude-sonnet-4-5", "say it"}},
		{"opencode at OpenAI", "opencode", "openai", []string{"run", "-m", "openai/gpt-5", "say it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, stub.Script{Subscription: c.model == "anthropic-oauth"}, c.model)
			bin := filepath.Join(u.project, "bin")
			must.Do(t, os.Mkdir(bin, 0o755))
			must.Do(t, os.WriteFile(filepath.Join(bin, c.agent),
				[]byte(withoutTheProxy+"exec '"+filepath.Join(dir, c.agent)+`' "$@"`+"\n"), 0o755))
			cmd := u.command(append(append([]string{"launch", "--sandbox=off", c.agent}, u.reach()...),
				append([]string{"--"}, c.args...)...)...)
			cmd.Dir = u.project
			cmd.Env = append(cmd.Env, "HOME="+filepath.Dir(u.home), "PATH="+bin+":"+os.Getenv("PATH"),
				"TMPDIR="+must.ShortDir(t))
			r := finish(t, cmd)
			answered := 0
			for _, row := range u.rows("--connector", connectors[c.model].FQN) {
				if row["host"] != "" && row["source"] != "daemon_request_boundary" {
					t.Errorf("a request came by %v", row["source"])
				}
				if row["decision"] == "proxied" && row["status"] == 200.0 {
					answered++
				}
			}
			if r.code != 0 || answered == 0 || strings.Contains(r.out+r.err, modelKey) {
				t.Errorf("exit %d, %d requests answered\n%s%s", r.code, answered, r.out, r.err)
			}
		})
	}
}
