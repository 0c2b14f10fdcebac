package catalog

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Each command of testdata/gh.txt works with github alone, with github-graphql beside it, there once it is approved, or
// with neither, as docs/connectors.md has it.
func TestTheManualSaysWhichCommandsOfGhWork(t *testing.T) {
	if _, err := exec.LookPath("gh"); err != nil {
		harness.Need(t, "gh: scripts/prepare --tests installs it")
	}
	o := services.Start(t, "", "", stub.Script{})
	alone, both := ghUser(t, o, "github"), ghUser(t, o, "github", "github-graphql")
	t.Run("each", func(t *testing.T) { runCommandsOfGh(t, alone, both) })
	for command, why := range map[string]string{
		"gh repo view acme/tool": "HTTP 403: aileron: POST /graphql is not allowed on api.github.com:443",
		"gh pr list":             "HTTP 403: aileron: POST /graphql is not allowed on api.github.com:443",
	} {
		if out, err := alone.bash(t, alone.repo, command); err == nil || !strings.Contains(out, why) {
			t.Errorf("%s: %v, want %s\n%s", command, err, why, out)
		}
	}
	const deleting = `gh api graphql -f query='mutation{deleteRepository(input:{repositoryId:"x"}){clientMutationId}}'`
	const why = `aileron: the mutation "deleteRepository" of GraphQL is not allowed`
	if out, err := both.bash(t, both.repo, deleting+" 2>&1 >/dev/null"); err == nil || !strings.Contains(out, why) {
		t.Errorf("%s: %v, want %s\n%s", deleting, err, why, out)
	}
	both.judgeGraphQL(t, "graphql query repository", "graphql query __type", "graphql.write mutation createPullRequest",
		"graphql.merge mutation mergePullRequest", "graphql.merge mutation enablePullRequestAutoMerge",
		"graphql mutation deleteRepository content_not_allowed")
}

func runCommandsOfGh(t *testing.T, alone, both user) {
	t.Helper()
	manual := string(must.Get(os.ReadFile("../../docs/connectors.md"))(t))
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/gh.txt"))(t))) {
		needs, command, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || line[0] == '#' {
			continue
		}
		t.Run(command, func(t *testing.T) {
			needs, operation, asks := strings.Cut(needs, " ")
			if !asks { // others run after them, so that one request waits at a time
				t.Parallel()
			}
			row := map[string]string{"github": "| with `github` |", "graphql": "| with `github-graphql` too |",
				"asks": "| with your approval |", "refused": "| with neither |"}[needs]
			_, text, _ := strings.Cut(manual, row)
			text, _, _ = strings.Cut(text, "\n")
			noun, rest, _ := strings.Cut(strings.TrimPrefix(command, "gh "), " ")
			verb, _, _ := strings.Cut(rest, " ")
			if !strings.Contains(text, "`"+noun+"`") && !strings.Contains(text, "`"+noun+" "+verb+"`") {
				t.Errorf("the row %q of the manual does not name %s %s", row, noun, verb)
			}
			switch needs {
			case "github":
				alone.works(t, command)
			case "graphql":
				alone.denied(t, command)
				both.works(t, command)
			case "asks":
				alone.denied(t, command)
				both.waits(t, command, operation)
			default:
				both.denied(t, command)
			}
		})
	}
}

// user is someone with a session without a sandbox, and a clone of acme/tool.
type user struct {
	*person
	env  []string
	repo string
}

func ghUser(t *testing.T, o *services.Origin, connectors ...string) user {
	t.Helper()
	p := newPerson(t)
	p.install(connectors...)
	return p.ghUser(t, o)
}

// ghUser starts the session of p.
func (p *person) ghUser(t *testing.T, o *services.Origin) user {
	t.Helper()
	args := []string{"proxy", "--json", "--upstream-ca", o.Roots}
	for authority, addr := range o.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = harness.Env(p.home, passphrase)
	ready := must.Get(harness.StartProxy(cmd))(t)
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	// TMPDIR: gh keeps responses there, which the other user's would then be.
	u := user{person: p, repo: filepath.Join(t.TempDir(), "c")}
	u.env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"PATH=" + os.Getenv("PATH"), "GH_TOKEN=placeholder", "HTTPS_PROXY=" + ready.ProxyURL, "GH_NO_UPDATE_NOTIFIER=1",
		"SSL_CERT_FILE=" + ready.CAFile, "GIT_SSL_CAINFO=" + ready.CAFile, "GIT_TERMINAL_PROMPT=0"}
	if out, err := u.bash(t, filepath.Dir(u.repo), "git clone -q https://github.com/acme/tool c"); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return u
}

func (u user) bash(t *testing.T, dir, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Env, cmd.Dir, cmd.WaitDelay = u.env, dir, time.Minute
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u user) works(t *testing.T, command string) {
	t.Helper()
	if out, err := u.bash(t, u.repo, command); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// denied checks that the command ends with a denial of the plane.
func (u user) denied(t *testing.T, command string) {
	t.Helper()
	out, err := u.bash(t, u.repo, command)
	if err == nil || !regexp.MustCompile(`HTTP 403|403 Forbidden|cannot be rerun|gh: aileron: `).MatchString(out) {
		t.Errorf("%v, want a denial\n%s", err, out)
	}
}

// waits checks that a request of the command waits for an approval of the operation, and that the command works once it
// has it.
func (u user) waits(t *testing.T, command, operation string) {
	t.Helper()
	ended := make(chan result, 1)
	go func() {
		out, err := u.bash(t, u.repo, command)
		ended <- result{out, err}
	}()
	u.approve(t, operation, ended)
	if r := <-ended; r.err != nil {
		t.Errorf("after the approval: %v\n%s", r.err, r.out)
	}
}

// A command whose approval did not come in time works when it is run again after it came, once.
func TestGhMergesWhenItIsRunAgain(t *testing.T) {
	if _, err := exec.LookPath("gh"); err != nil {
		harness.Need(t, "gh: scripts/prepare --tests installs it")
	}
	o := services.Start(t, "", "", stub.Script{})
	p := newPerson(t)
	p.install("github", "github-graphql")
	must.Do(t, os.WriteFile(filepath.Join(p.home, "config.toml"), []byte("[approval]\nhold = \"1s\"\n"), 0o600))
	u := p.ghUser(t, o)
	const command = "gh pr merge 8 -R acme/tool --merge"
	u.denied(t, command)
	p.approve(t, "graphql.merge", make(chan result, 1))
	u.works(t, command)
	u.denied(t, command)
}

// A merge by the REST API waits, and what GitHub says of the pull request is shown with it. It is for one head: a
// request that names none does not wait, and one that names another is not approved by the way.
func TestAMergeIsShownWithItsPullRequest(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gh"); err != nil {
		harness.Need(t, "gh: scripts/prepare --tests installs it")
	}
	u := ghUser(t, services.Start(t, "", "", stub.Script{}), "github")
	u.works(t, "gh api -X HEAD repos/acme/tool --silent") // as browse -n of gh 2.86 asks
	const merge = "gh api -X PUT repos/acme/tool/pulls/8/merge -f merge_method=squash"
	out, err := u.bash(t, u.repo, merge)
	if err == nil || !strings.Contains(out, "which is for one head.sha: name it as sha in the body") {
		t.Errorf("a merge of no head in particular: %v\n%s", err, out)
	}
	begin := func(sha string) chan result {
		ended := make(chan result, 1)
		go func() {
			out, err := u.bash(t, u.repo, merge+" -f sha="+sha)
			ended <- result{out, err}
		}()
		return ended
	}
	ended := begin(strings.Repeat("f", 40))
	other := u.waiting(t, ended)
	_, errs, code := u.run("approval", "approve", other.ID)
	if code == 0 || !strings.Contains(errs, "its sha is another than head.sha") {
		t.Errorf("approval of another head ends with %d\n%s", code, errs)
	}
	if _, errs, code := u.run("approval", "deny", other.ID); code != 0 {
		t.Errorf("approval deny ends with %d\n%s", code, errs)
	}
	<-ended
	ended = begin("0123456789012345678901234567890123456789")
	q := u.waiting(t, ended)
	shown, errs, code := u.run("approval", "show", q.ID)
	for _, line := range []string{"what the service says (github pulls.get)", "  > title: The title\n",
		"  > user.login: acme\n", "  > state: open\n", "  | PUT /repos/acme/tool/pulls/8/merge\n", "squash"} {
		if code != 0 || !strings.Contains(shown, line) {
			t.Errorf("approval show has no %q: %d\n%s%s", line, code, shown, errs)
		}
	}
	u.approve(t, "pulls.merge", ended)
	if r := <-ended; r.err != nil {
		t.Errorf("after the approval: %v\n%s", r.err, r.out)
	}
}

// result is what a command has printed, and how it ended.
type result struct {
	out string
	err error
}

type question struct{ ID, State, Operation string }

// waiting returns the question that waits. No other may wait, and the command must not have ended.
func (p *person) waiting(t *testing.T, ended chan result) (asked question) {
	t.Helper()
	harness.WaitFor(t, "a request waits for an approval", func() bool {
		out, errs, _ := p.run("approval", "list", "--json") // it fails while a session starts or ends
		var all []question
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatalf("approval list: %v\n%s%s", err, out, errs)
		}
		for _, q := range all {
			if q.State == "pending" {
				asked = q
			}
		}
		return asked.ID != "" || len(ended) > 0
	})
	if len(ended) > 0 {
		r := <-ended
		t.Fatalf("it ended and did not wait: %v\n%s", r.err, r.out)
	}
	return asked
}

// approve approves the request of the operation that waits.
func (p *person) approve(t *testing.T, operation string, ended chan result) {
	t.Helper()
	asked := p.waiting(t, ended)
	if asked.Operation != operation {
		t.Errorf("%s waits, want %s", asked.Operation, operation)
	}
	if out, errs, code := p.run("approval", "approve", asked.ID); code != 0 {
		t.Fatalf("approval approve ends with %d\n%s%s", code, out, errs)
	}
}

// judgeGraphQL checks that rows have the operations, types and fields of what was asked of GraphQL, and the reasons of
// denials.
func (p *person) judgeGraphQL(t *testing.T, wants ...string) {
	t.Helper()
	type row struct {
		Operation string
		Reason    string
		Fields    struct {
			Type  string   `json:"graphql_type"`
			Names []string `json:"graphql_fields"`
		}
	}
	out, errs, code := p.run("audit", "list", "--json", "--limit", "0")
	if code != 0 {
		t.Fatalf("audit list: %s", errs)
	}
	seen := map[string]bool{}
	for _, r := range harness.Rows[row](t, out) {
		for _, name := range r.Fields.Names {
			seen[strings.TrimSpace(strings.Join([]string{r.Operation, r.Fields.Type, name, r.Reason}, " "))] = true
		}
	}
	for _, want := range wants {
		if !seen[want] {
			t.Errorf("no row has %s: %v", want, slices.Sorted(maps.Keys(seen)))
		}
	}
}
