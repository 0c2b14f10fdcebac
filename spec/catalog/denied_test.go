package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
)

// What a reviewer of an entry may rely on: the right column is the operation
// that the proxy finds, "an approval" where one asks, or "" where it denies the request.
func TestWhatEntriesAllowAndDeny(t *testing.T) {
	for entry, requests := range map[string]map[string]string{
		"github": {
			"GET https://api.github.com/user":                                                       "user.get",
			"POST https://api.github.com/graphql":                                                   "",
			"GET https://api.github.com/repos/o/r/commits/feature%2Fx/check-runs":                   "checks.list",
			"GET https://api.github.com/repos/o/r/commits/feature/x":                                "repos.commit.any",
			"GET https://api.github.com/repos/o/r/commits/feature%2Fx":                              "repos.commit",
			"GET https://api.github.com/repos/o/r/branches/feature/x":                               "repos.branch",
			"GET https://api.github.com/repos/o/r/git/ref/heads/feature/x":                          "repos.ref",
			"GET https://api.github.com/repos/o/r/compare/main...feature%2Fx":                       "repos.compare",
			"GET https://api.github.com/repos/o/r/compare/main...feature/x":                         "repos.compare.any",
			"GET https://api.github.com/repos/o/r/contents/docs%2FREADME.md?ref=feature%2Fx":        "repos.contents",
			"GET https://api.github.com/repos/o/r/commits/..%2F..%2Fhooks/check-runs":               "",
			"GET https://api.github.com/repos/o%2Fr/commits":                                        "",
			"GET https://api.github.com/repos/o/r/contents":                                         "repos.contents.root",
			"GET https://api.github.com/repos/o/r/git/trees/feature%2Fx?recursive=1":                "repos.tree",
			"GET https://api.github.com/repos/o/r/actions/workflows/ci.yml/runs?branch=feature%2Fx": "actions.workflow.runs",
			"GET https://api.github.com/repos/o/r/actions/jobs/7/logs":                              "actions.job.logs",
			"GET https://api.github.com/repos/o/r/commits/feature%2Fx/check-suites":                 "checks.suites",
			"GET https://api.github.com/repos/o/r/pulls/1/merge":                                    "pulls.merged",
			"PATCH https://api.github.com/repos/o/r/pulls/1":                                        "pulls.update",
			"POST https://api.github.com/repos/o/r/pulls/1/comments":                                "pulls.comment",
			"PATCH https://api.github.com/repos/o/r/issues/comments/7":                              "issues.comment.update",
			"DELETE https://api.github.com/repos/o/r/issues/1/labels/good%20first%20issue":          "issues.labels.remove",
			"POST https://api.github.com/repos/o/r/pulls/1/reviews":                                 "",
			"PUT https://api.github.com/repos/o/r/pulls/1/update-branch":                            "",
			"DELETE https://api.github.com/repos/o/r/issues/comments/7":                             "",
			"POST https://api.github.com/repos/o/r/labels":                                          "",
			"POST https://api.github.com/repos/o/r/actions/runs/7/rerun":                            "",
			"POST https://api.github.com/repos/o/r/actions/workflows/ci.yml/dispatches":             "",
			"GET https://api.github.com/repos/o/r/actions/secrets":                                  "",
			"GET https://api.github.com/user/emails":                                                "",
			"GET https://productionresultssa7.blob.core.windows.net/actions-results/a/l.txt?sig=x":  "logs.download",
			"PUT https://productionresultssa7.blob.core.windows.net/actions-results/a/l.txt?sig=x":  "",
			"GET https://productionresultssa7.blob.core.windows.net/other/a?sig=x":                  "",
			"GET https://attacker.blob.core.windows.net/actions-results/a?sig=x":                    "",
			"PATCH https://api.github.com/repos/o/r/git/refs/heads/feature/x":                       "",
			"DELETE https://api.github.com/repos/o/r":                                               "",
			"PUT https://api.github.com/repos/o/r/pulls/1/merge":                                    "an approval",
			"HEAD https://api.github.com/repos/o/r":                                                 "repos.exists",
			"HEAD https://api.github.com/repos/o/r/contents/x":                                      "",
			"PUT https://api.github.com/repos/o/r/contents/x":                                       "",
			"POST https://api.github.com/repos/o/r/releases":                                        "",
			"POST https://uploads.github.com/repos/o/r/releases/1/assets":                           "",
			"GET https://github.com/o/r.git/info/refs?service=git-upload-pack":                      "git.fetch.refs",
			"GET https://github.com/o/r/info/refs?service=git-receive-pack":                         "git.push.refs",
			"GET https://github.com/o/r/info/refs?service=git-upload-archive":                       "",
			"GET https://github.com/o/r/info/refs?service=git-upload-pack&x=1":                      "",
			"POST https://github.com/o/r.git/git-upload-pack":                                       "git.fetch",
			"POST https://github.com/o/r.git/git-receive-pack":                                      "git.push",
			"POST http://github.com/o/r.git/git-receive-pack":                                       "",
			"POST https://github.com/o/r.git/info/lfs/objects/batch":                                "git.lfs.batch",
			"POST https://github.com/o/r.git/info/lfs/locks":                                        "",
			"PUT https://github-cloud.s3.amazonaws.com/alambic/media/1/2?sig=x":                     "",
			"GET https://github-cloud.s3.amazonaws.com/other/1/2?sig=x":                             "",
			"GET https://github.com/settings/tokens":                                                "",
			"GET https://codeload.github.com/o/r/tar.gz/refs/heads/main":                            "codeload.download",
			"GET https://objects.githubusercontent.com/other-bucket/x":                              "",
			"PUT https://release-assets.githubusercontent.com/github-production-release-asset/1/2":  "",
		},
		"github-public": {
			"GET https://github.com/o/r/info/refs?service=git-upload-pack":  "git.fetch.refs",
			"GET https://github.com/o/r/info/refs?service=git-receive-pack": "",
			"POST https://github.com/o/r/git-receive-pack":                  "",
			"GET https://api.github.com/user":                               "",
		},
		"gitlab": {
			"GET https://gitlab.com/api/v4/projects/7/issues?state=opened":         "issues.list",
			"GET https://gitlab.com/api/v4/projects/g%2Fp":                         "projects.get",
			"GET https://gitlab.com/api/v4/projects/g%2Fs%2Fp/issues":              "issues.list",
			"GET https://gitlab.com/api/v4/projects/g%2F..%2Fp/issues":             "",
			"PUT https://gitlab.com/api/v4/projects/7/merge_requests/1%2Fmerge":    "",
			"GET https://gitlab.com/g/p/-/archive/feature/x/p-feature-x.tar.gz":    "archives.download",
			"PUT https://gitlab.com/api/v4/projects/7/merge_requests/1/merge":      "",
			"DELETE https://gitlab.com/api/v4/projects/7":                          "",
			"POST https://gitlab.com/api/v4/projects/7/access_tokens":              "",
			"POST https://gitlab.com/g/s/p.git/git-receive-pack":                   "git.push.subgroup",
			"POST https://gitlab.com/g/s/p/git-receive-pack":                       "",
			"PUT https://gitlab.com/g/p.git/gitlab-lfs/objects/0123/5":             "",
			"GET https://storage.googleapis.com/gitlab-gprd-lfs-objects/a/b?sig=1": "objects.download",
			"GET https://storage.googleapis.com/attacker/a?sig=1":                  "",
			"PUT https://storage.googleapis.com/gitlab-gprd-lfs-objects/a/b?sig=1": "",
			"POST https://storage.googleapis.com/upload/storage/v1/b/attacker/o":   "",
		},
		"npm": {
			"GET https://registry.npmjs.org/@types%2fnode":                      "packages.download",
			"GET https://registry.npmjs.org/left/-/left-1.0.0.tgz":              "packages.download",
			"GET https://registry.npmjs.org/-/v1/search?text=data":              "",
			"PUT https://registry.npmjs.org/left":                               "",
			"POST https://registry.npmjs.org/-/npm/v1/security/advisories/bulk": "",
			"GET http://registry.npmjs.org/left":                                "",
		},
		"pypi": {
			"GET https://pypi.org/simple/requests/":                                          "simple.get",
			"GET https://pypi.org/simple/requests/?data=1":                                   "",
			"POST https://upload.pypi.org/legacy/":                                           "",
			"POST https://pypi.org/pypi":                                                     "",
			"GET https://files.pythonhosted.org/packages/a/b/c/x-1.0%2Bcu1-py3-none-any.whl": "files.download",
		},
		"go": {
			"GET https://proxy.golang.org/github.com/%21burnt%21sushi/toml/@v/list":                   "modules.download",
			"GET https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.0.0.zip":                 "modules.download",
			"GET https://proxy.golang.org/gomodules.xyz/jsonpatch/v2/@v/list":                         "modules.download",
			"GET https://sum.golang.org/lookup/al.essio.dev/pkg/shellescape@v1.6.0":                   "sumdb.lookup",
			"GET https://proxy.golang.org/data.attacker.example/@v/list":                              "",
			"GET https://proxy.golang.org/data.attacker.example/github.com/@v/list":                   "",
			"GET https://sum.golang.org/lookup/golang.org/x/mod@v0.1.0":                               "sumdb.lookup",
			"GET https://sum.golang.org/lookup/data.attacker.example/x@v0.1.0":                        "",
			"GET https://proxy.golang.org/sumdb/sum.golang.org/lookup/data.attacker.example/x@v0.1.0": "",
			"GET https://proxy.golang.org/sumdb/sum.golang.org/supported":                             "sumdb.supported",
			"GET https://proxy.golang.org/sumdb/sum.attacker.example/supported":                       "",
			"GET https://sum.golang.org/tile/8/0/x001/123.p/45":                                       "sumdb.tile",
			"GET https://storage.googleapis.com/attacker/x":                                           "",
			"GET https://proxy.golang.org/github.com/o/r/@v/list?data=1":                              "",
		},
		"crates": {
			"GET https://index.crates.io/se/rd/serde":           "index.crate",
			"GET https://index.crates.io/1/a":                   "index.short",
			"PUT https://crates.io/api/v1/crates/new":           "",
			"GET https://crates.io/api/v1/crates?q=data":        "",
			"GET https://static.crates.io/crates/a/a-1.0.crate": "crates.file",
		},
		"rubygems": {
			"HEAD https://index.rubygems.org/versions":                "index.versions.head",
			"GET https://rubygems.org/quick/Marshal.4.8/a.gemspec.rz": "index.spec",
			"POST https://rubygems.org/api/v1/gems":                   "",
			"GET https://rubygems.org/api/v1/search.json?query=data":  "",
		},
		"maven": {"HEAD https://repo1.maven.org/maven2/a/b.pom": "artifacts.head",
			"PUT https://repo1.maven.org/maven2/a": ""},
		"debian": {"GET http://deb.debian.org/debian/pool/main/f/foo_1%7erc1.deb": "packages.download",
			"GET http://deb.debian.org/debian/x?data=1": "", "PUT https://deb.debian.org/x": ""},
		"alpine": {"GET https://dl-cdn.alpinelinux.org/alpine/edge/testing/x86_64/a-1.apk": "packages.download",
			"GET https://dl-cdn.alpinelinux.org/alpine/edge/data/x86_64/a-1.apk": ""},
		"gemini": {
			"POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent":               "models.generate",
			"POST https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse": "models.generate",
			"POST https://generativelanguage.googleapis.com/v1beta/models/g:batchGenerateContent":          "",
			"POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent?key=other":     "",
			"POST https://generativelanguage.googleapis.com/upload/v1beta/files":                           "",
			"POST https://generativelanguage.googleapis.com/v1beta/cachedContents":                         "",
		},
		"google": {
			"GET https://gmail.googleapis.com/gmail/v1/users/me/messages?q=x&alt=json":         "gmail.messages.search",
			"GET https://gmail.googleapis.com/gmail/v1/users/me/messages/1?format=full":        "gmail.messages.get",
			"POST https://gmail.googleapis.com/gmail/v1/users/me/messages/send?alt=json":       "gmail.messages.send",
			"GET https://gmail.googleapis.com/gmail/v1/users/me/messages?key=other":            "",
			"GET https://gmail.googleapis.com/gmail/v1/users/a%40acme.example/messages":        "",
			"DELETE https://gmail.googleapis.com/gmail/v1/users/me/messages/1":                 "",
			"POST https://gmail.googleapis.com/gmail/v1/users/me/messages/batchDelete":         "",
			"POST https://gmail.googleapis.com/gmail/v1/users/me/messages/1/trash":             "",
			"POST https://gmail.googleapis.com/gmail/v1/users/me/settings/forwardingAddresses": "",
			"POST https://gmail.googleapis.com/upload/gmail/v1/users/me/messages/send":         "",

			"GET https://www.googleapis.com/calendar/v3/calendars/primary/events?q=lunch":    "calendar.events.list",
			"GET https://www.googleapis.com/calendar/v3/calendars/a%40acme.example/events/e": "calendar.events.get",
			"POST https://www.googleapis.com/calendar/v3/calendars/primary/events?alt=json":  "calendar.events.create",
			"PATCH https://www.googleapis.com/calendar/v3/calendars/primary/events/e":        "calendar.events.update",
			"POST https://www.googleapis.com/calendar/v3/freeBusy":                           "calendar.freebusy",
			"DELETE https://www.googleapis.com/calendar/v3/calendars/primary/events/e":       "",
			"POST https://www.googleapis.com/calendar/v3/calendars/primary/acl":              "",
			"GET https://www.googleapis.com/drive/v3/files":                                  "",
			"POST https://oauth2.googleapis.com/token":                                       "",
			"POST https://oauth2.googleapis.com/revoke":                                      "",
		},
		"linear": {
			"POST https://api.linear.app/graphql":        "graphql", // before the body is judged
			"GET https://api.linear.app/graphql?query=q": "",
			"POST https://api.linear.app/oauth/token":    "",
			"POST https://api.linear.app/oauth/revoke":   "",
			"POST https://linear.app/oauth/authorize":    "",
			"GET https://uploads.linear.app/a/b/c.png":   "",
		},
		"slack": {
			"GET https://slack.com/api/conversations.history?channel=C1&limit=5": "conversations.history",
			"POST https://slack.com/api/conversations.history":                   "methods.read",
			"POST https://slack.com/api/auth.test":                               "methods.read",
			"GET https://slack.com/api/search.messages?query=lunch":              "search.messages",
			"POST https://slack.com/api/chat.postMessage":                        "chat.postMessage",
			"POST https://slack.com/api/chat.postMessage?token=other":            "",
			"GET https://slack.com/api/chat.postMessage?channel=C1&text=x":       "",
			"POST https://slack.com/api/chat.delete":                             "",
			"POST https://slack.com/api/conversations.kick":                      "",
			"POST https://slack.com/api/admin.users.list":                        "",
			"POST https://slack.com/api/auth.revoke":                             "",
			"POST https://slack.com/api/oauth.v2.access":                         "",
			"POST https://slack.com/api/files.getUploadURLExternal":              "",
		},
		"openrouter": {"GET https://openrouter.ai/api/v1/keys": "",
			"POST https://openrouter.ai/api/v1/messages": "messages.create"},
		"anthropic-oauth": {"POST https://api.anthropic.com/v1/files": "",
			"POST https://api.anthropic.com/v1/messages?beta=true": "messages.create"},
		"local-openai": {"POST http://local-model.test:11434/v1/chat/completions": "chat.completions.create",
			"POST http://local-model.test:11434/api/pull": "", "POST http://local-model.test/v1/chat/completions": ""},
	} {
		e, ok := Find(entry)
		if !ok {
			t.Errorf("there is no %s", entry)
			continue
		}
		ix := must.Get(spec.NewIndex([]*spec.Connector{e.Connector}))(t)
		for request, want := range requests {
			method, url, _ := strings.Cut(request, " ")
			authority, scheme, d := proxy.ParseURL(url)
			if d != nil {
				t.Fatal(d)
			}
			decision := proxy.Decide(proxy.Question{Index: ix, Authority: authority, Scheme: scheme, Method: method,
				Target: url})
			got := ""
			switch {
			case decision.Verdict == proxy.Allow:
				got = decision.Match.Operation.Name
			case decision.Denial != nil && decision.Denial.Reason == proxy.ReasonApproval:
				got = "an approval"
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q (%v)", entry, request, got, want, decision.Denial)
			}
		}
	}
}

// A denied host of modules names the command that allows it, unless a shell would read more than a host in it.
func TestADeniedHostOfModulesNamesTheCommand(t *testing.T) {
	e, _ := Find("go")
	ix := must.Get(spec.NewIndex([]*spec.Connector{e.Connector}))(t)
	for host, want := range map[string]string{
		"own.example": "the user runs aileron allow ID --path '/own.example/{module...}', with the audit id",
		"x'$(id)'":    "",
	} {
		target := spec.Target{Scheme: "https", Host: "proxy.golang.org", Port: 443, Method: "GET",
			Path: "/" + host + "/x/@v/list"}
		_, no := ix.Match(target)
		if no == nil || !strings.Contains(no.Error(), want) || want == "" && strings.Contains(no.Error(), "--path") {
			t.Errorf("the denial of %s is %v, want %q in it", host, no, want)
		}
	}
}

// The connector and the data that scripts/go-hosts keeps have the same hosts.
func TestTheHostsOfModulesAreThoseOfTheData(t *testing.T) {
	var want []string
	for line := range strings.Lines(string(must.Get(os.ReadFile("../../scripts/go-hosts.txt"))(t))) {
		if host, ok := strings.CutPrefix(strings.TrimSpace(line), "host "); ok {
			want = append(want, host)
		}
	}
	e, _ := Find("go")
	limited := 0
	for _, op := range e.Connector.Tools[0].Operations {
		for _, in := range op.Inputs {
			if in.Name != "host" {
				continue
			}
			if limited++; len(want) < 50 || !slices.Equal(in.Values, want) {
				t.Errorf("the hosts of %s are %q, want %q: run scripts/go-hosts", op.Name, in.Values, want)
			}
		}
	}
	if limited != 3 {
		t.Errorf("%d operations have hosts, want 3", limited)
	}
}
