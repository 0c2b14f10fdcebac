package services

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
)

// githubAPI responds to every request to GitHub's REST and GraphQL APIs with something of the shape that gh expects:
// whether a request may come is for what is in between to decide.
func githubAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", rest)
	mux.HandleFunc("POST /graphql", graphql)
	mux.Handle("GET /repos/acme/tool/releases/assets/5", redirect(assetURL))
	mux.Handle("GET /repos/acme/tool/actions/runs/{run}/logs",
		redirect("https://results-receiver.actions.githubusercontent.com/rest/runs/ab/logs?filename=l.zip&signature=s"))
	mux.Handle("GET /repos/acme/tool/actions/jobs/{job}/logs",
		redirect("https://productionresultssa7.blob.core.windows.net/actions-results/ab/logs/job-logs.txt?sig=s%2Bt"))
	mux.Handle("GET /repos/acme/tool/actions/artifacts/{artifact}/zip",
		redirect("https://productionresultssa7.blob.core.windows.net/actions-results/ab/artifacts/cd.zip?sig=s%2Bt"))
	return mux
}

// rest responds to a request of the REST API.
func rest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Oauth-Scopes", "repo, read:org")
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case strings.Contains(r.Header.Get("Accept"), "diff"):
		_, _ = io.WriteString(w, "diff --git a/f b/f\n")
	case r.Method == http.MethodGet && lists.MatchString(r.URL.Path):
		_ = json.NewEncoder(w).Encode([]any{thing()})
	default:
		_ = json.NewEncoder(w).Encode(thing())
	}
}

// lists are the paths of lists that are no objects.
var lists = regexp.MustCompile(`^/(repos|users|orgs|user)/.*(issues|pulls|comments|labels|repos|commits|branches|` +
	`releases|tags|files|reviews|timeline|annotations|pulls/\d+/commits)$`)

const date = "2026-01-02T03:04:05Z"

// thing is what a repository, an issue, a run and so on have, by the names of REST, and lists of them in an object.
func thing() map[string]any {
	const url, head = "https://api.github.com/repos/acme/tool", "0123456789012345678901234567890123456789"
	owner := map[string]any{"login": "acme", "type": "User", "id": 7}
	one := map[string]any{"id": 7, "node_id": "N_7", "number": 7, "name": "tool", "full_name": "acme/tool",
		"title": "The title", "body": "The text", "state": "open", "login": "octo", "repository_url": url,
		"html_url":  "https://github.com/acme/tool",
		"clone_url": "https://github.com/acme/tool.git", "url": url + "/things/7", "created_at": date, "updated_at": date,
		"run_started_at": date, "published_at": date, "started_at": date, "completed_at": date, "status": "completed",
		"conclusion": "success", "default_branch": "main", "tag_name": "v1", "workflow_id": 7, "run_number": 1,
		"event": "push", "path": ".github/workflows/ci.yml", "head_branch": "main", "head_sha": head, "color": "ffffff",
		"head":     map[string]any{"sha": head, "label": "acme:main"},
		"jobs_url": url + "/actions/runs/7/jobs", "logs_url": url + "/actions/runs/7/logs",
		"archive_download_url": url + "/actions/artifacts/7/zip", "workflow_url": url + "/actions/workflows/7",
		"content": "IyBBIHByb2plY3Q=", "encoding": "base64", "size": 13, "owner": owner, "user": owner, "author": owner,
		"steps":      []any{map[string]any{"name": "s", "number": 1, "status": "completed", "conclusion": "success"}},
		"repository": map[string]any{"name": "tool", "full_name": "acme/tool", "owner": owner},
		"commit":     map[string]any{"author": map[string]any{"name": "a", "date": date}, "message": "m"},
		"assets": []any{map[string]any{"name": "tool.txt", "size": 13, "state": "uploaded",
			"url": url + "/releases/assets/5"}}}
	all := maps.Clone(one)
	for _, list := range []string{"items", "workflow_runs", "workflows", "jobs", "artifacts", "check_runs"} {
		all[list] = []any{one}
	}
	all["total_count"] = 1
	return all
}

// graphql responds to a query with what it names of everything, and to a mutation with nothing.
func graphql(w http.ResponseWriter, r *http.Request) {
	var query struct {
		Query     string
		Variables map[string]any
	}
	_ = json.NewDecoder(r.Body).Decode(&query)
	list := func(nodes ...any) map[string]any {
		return map[string]any{"totalCount": len(nodes), "nodes": nodes, "pageInfo": map[string]any{"hasNextPage": false}}
	}
	owner := map[string]any{"login": "acme", "id": "U_1"}
	checks := list(map[string]any{"commit": map[string]any{"statusCheckRollup": map[string]any{"contexts": list(
		map[string]any{"__typename": "CheckRun", "name": "ci", "status": "COMPLETED", "conclusion": "SUCCESS",
			"startedAt": date, "completedAt": date})}}})
	kind, checked := "Issue", "CLEAN"
	for _, v := range query.Variables {
		switch v {
		case 8.0:
			kind = "PullRequest"
		case 9.0:
			kind, checked = "PullRequest", "BLOCKED"
		}
	}
	item := map[string]any{"id": "I_7", "number": 7, "title": "The title", "body": "The text", "state": "OPEN",
		"url": "https://github.com/acme/tool/issues/7", "author": owner, "__typename": kind, "headRefName": "main",
		"baseRefName": "main", "headRepositoryOwner": owner, "headRepository": map[string]any{"name": "tool"},
		"mergeable": "MERGEABLE", "mergeStateStatus": checked, "labels": list(), "assignees": list(), "comments": list(),
		"reviews": list(), "projectCards": list(), "reviewRequests": list(), "statusCheckRollup": checks, "commits": checks,
		"createdAt": date, "updatedAt": date}
	repository := map[string]any{"id": "R_1", "name": "tool", "owner": owner, "nameWithOwner": "acme/tool",
		"hasIssuesEnabled": true, "viewerPermission": "ADMIN", "url": "https://github.com/acme/tool",
		"defaultBranchRef": map[string]any{"name": "main"}, "mergeCommitAllowed": true, "issues": list(item),
		"pullRequests": list(item), "pullRequest": item, "issue": item, "issueOrPullRequest": item, "hasIssue": true,
		"labels": list(map[string]any{"id": "L_1", "name": "bug", "color": "ffffff"}), "assignableUsers": list(owner),
		"milestones": list(), "releases": list(map[string]any{"tagName": "v1", "name": "v1", "publishedAt": date}),
		"visibility": "PUBLIC", "createdAt": date, "pushedAt": date, "updatedAt": date}
	switch { // names that stand for more than one thing
	case strings.Contains(query.Query, "releases("):
		repository = map[string]any{"releases": repository["releases"]}
	case strings.Contains(query.Query, "release("):
		// gh asks for a draft while it asks the REST API for the release, and takes what comes first.
		repository = map[string]any{"release": nil}
	case strings.Contains(query.Query, "projectItems("):
		repository = map[string]any{"pullRequest": map[string]any{"projectItems": list()}}
	}
	data := map[string]any{"repository": repository, "search": list(item), "node": item, "user": owner,
		"repositoryOwner": map[string]any{"login": "acme", "repositories": list(repository)},
		"viewer":          map[string]any{"login": "octo", "id": "U_2"}}
	if strings.HasPrefix(query.Query, "mutation") {
		clear(data)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": named(data, query.Query)})
}

// named returns what a query names of v: some of gh's libraries refuse anything else.
func named(v any, query string) any {
	switch v := v.(type) {
	case map[string]any:
		some := map[string]any{}
		for name, value := range v {
			if regexp.MustCompile(`\b` + name + `\b`).MatchString(query) {
				some[name] = named(value, query)
			}
		}
		return some
	case []any:
		some := []any{}
		for _, value := range v {
			some = append(some, named(value, query))
		}
		return some
	default:
		return v
	}
}
