package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// A request that another connector of the catalogue is for is allowed by installing that one, and not by a connector of
// one's own with the same grant.
func TestTheReportNamesTheConnectorThatIsForARequest(t *testing.T) {
	for _, c := range []struct{ method, host, path, connector, want string }{
		{"POST", "api.github.com", "/graphql", "github", "aileron connector install github-graphql"},
		{"GET", "api.github.com", "/graphql", "github", "aileron allow 01"},
		{"POST", "api.github.com", "/graphql/more", "github", "aileron allow 01"},
		{"POST", "api.github.com", "/graphql", "github-graphql", "aileron allow 01"}, // another query
		{"GET", "api.github.com", "/repos/a/b/hooks", "github", "aileron allow 01"},
		// Which would stand beside an installed one that names the same paths.
		{"GET", "api.anthropic.com", "/api/oauth/profile", "anthropic", "aileron allow 01"},
	} {
		got := Remedy(session.Refusal{Reason: "operation_not_matched", Method: c.method, Host: c.host, Port: 443,
			Path: c.path, Connector: catalog.FQN(c.connector), AuditID: "01"})
		if got != c.want {
			t.Errorf("%s %s%s: %q, want %q", c.method, c.host, c.path, got, c.want)
		}
	}
	own := session.Refusal{Reason: "operation_not_matched", Method: "POST", Host: "api.github.com", Port: 443,
		Path: "/graphql", Connector: "local://me/github", AuditID: "01"}
	if got := Remedy(own); got != "aileron allow 01" {
		t.Errorf("beside a connector of one's own: %q", got)
	}
}

func TestNamesThatAnAgentChoosesDisplaceNoOtherInTheReport(t *testing.T) {
	var changes []hostfiles.Change
	for i := range 100 {
		changes = append(changes, hostfiles.Change{Path: fmt.Sprintf(".a/%d/.envrc", i), After: "x"})
	}
	changes = append(changes, hostfiles.Change{Path: ".envrc", After: "x"},
		hostfiles.Change{Path: ".git/config", After: "x"},
		hostfiles.Change{Path: "/repo/.git/hooks/x", After: "x"})
	text := strings.Join(HostFileLines(changes), "\n")
	for _, path := range []string{".envrc is", ".git/config is", "/repo/.git/hooks/x is", "and 91 more"} {
		if !strings.Contains("\n"+text, "\n"+path) {
			t.Errorf("the report does not name %s:\n%s", path, text)
		}
	}
}

// A worktree that git made is one line, and one that leads git to other settings is none of these.
func TestAWorktreeWithOtherSettingsIsReportedAsWhatTheHostRuns(t *testing.T) {
	for common, want := range map[string]string{
		"../..\n":   ".git/worktrees/w is new: git has it for a worktree of the repository",
		"../../x\n": ".git/worktrees/w/commondir is new: your host runs it when you use git here",
	} {
		dir := t.TempDir()
		must.Do(t, os.MkdirAll(filepath.Join(dir, ".git/worktrees/w"), 0o700))
		before := hostfiles.Take(t.Context(), dir)
		for name, text := range map[string]string{"HEAD": "x\n", "commondir": common, "gitdir": "/w/.git\n"} {
			must.Do(t, os.WriteFile(filepath.Join(dir, ".git/worktrees/w", name), []byte(text), 0o600))
		}
		lines := HostFileLines(before.Changes(hostfiles.Take(t.Context(), dir)))
		if !slices.Contains(lines, want) || len(lines) > 2 {
			t.Errorf("%q: %q", common, lines)
		}
	}
}

// The report counts what a person was asked, and is silent where nothing was.
func TestTheReportCountsApprovals(t *testing.T) {
	for want, asked := range map[string]session.Asked{
		"3 asked, 1 approved, 1 denied, 1 expired": {Requested: 3, Approved: 1, Denied: 1, Expired: 1}, "": {},
	} {
		var out strings.Builder
		Print(&console.Console{Stderr: &out}, launch.Ended{Requests: session.Tally{Approvals: asked}})
		if has := strings.Contains(out.String(), "approvals"); has != (want != "") || !strings.Contains(out.String(), want) {
			t.Errorf("%+v: %s", asked, out.String())
		}
	}
}
