package stub

import (
	"encoding/json"
	"net/http"
	"strings"
)

// github is as much of the GitHub API as curl and Debian's gh (2.23) ask for
// when they show an account, a repository and its issues.
func (s *Server) github() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Oauth-Scopes", "repo, read:org") // what gh auth status reads
		reply(w, map[string]any{"current_user_url": "https://" + GitHub + "/user"})
	})
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"login": "octo-stand-in", "id": 1})
	})
	mux.HandleFunc("GET /repos/{owner}/{repo}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]any{"full_name": r.PathValue("owner") + "/" + r.PathValue("repo"), "private": true})
	})
	mux.HandleFunc("GET /repos/{owner}/{repo}/readme", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"name": "README.md", "content": "IyBBIHByb2plY3Q=", "encoding": "base64"}) // "# A project"
	})
	mux.HandleFunc("GET /repos/{owner}/{repo}/issues", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, []any{map[string]any{"number": 7, "title": "An issue of the stub", "state": "open"}})
	})
	mux.HandleFunc("POST /repos/{owner}/{repo}/issues", func(w http.ResponseWriter, r *http.Request) {
		var issue struct{ Title string }
		if json.NewDecoder(r.Body).Decode(&issue) != nil || issue.Title == "" {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed"})
			return
		}
		answer(w, http.StatusCreated, map[string]any{"number": 8, "title": issue.Title, "state": "open"})
	})
	mux.HandleFunc("POST /graphql", graphql)
	return mux
}

// graphql answers by what the query mentions; unknown fields of an answer do
// not trouble gh, missing ones read as empty.
func graphql(w http.ResponseWriter, r *http.Request) {
	var query struct {
		Query     string
		Variables struct{ Owner, Name, Repo string }
	}
	if err := json.NewDecoder(r.Body).Decode(&query); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"})
		return
	}
	data := map[string]any{"viewer": map[string]any{"login": "octo-stand-in"}}
	if strings.Contains(query.Query, "repository(") {
		data["repository"] = map[string]any{
			"id": "R_1", "name": query.Variables.Name, "owner": map[string]any{"login": query.Variables.Owner},
			"description": "A repository of the stub", "hasIssuesEnabled": true, "viewerPermission": "ADMIN",
			"url":              "https://github.com/" + query.Variables.Owner + "/" + query.Variables.Name,
			"defaultBranchRef": map[string]any{"name": "main"},
			"issues": map[string]any{"totalCount": 1, "pageInfo": map[string]any{"hasNextPage": false, "endCursor": ""},
				"nodes": []any{map[string]any{"number": 7, "title": "An issue of the stub", "state": "OPEN",
					"url": "https://github.com/o/r/issues/7", "updatedAt": "2026-01-02T03:04:05Z",
					"labels": map[string]any{"nodes": []any{}, "totalCount": 0}}}},
		}
	}
	reply(w, map[string]any{"data": data})
}
