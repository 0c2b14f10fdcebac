package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
)

// Hide makes a repository one that is not public: it and its releases are there for those who ask the forge's API with
// the token alone.
func (f *Forge) Hide(host, repo, token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token[host+"/"+repo] = token
}

// isPrivate reports whether a repository, host/owner/name, is not public.
func (f *Forge) isPrivate(repo string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.token[repo] != ""
}

// mayRead reports whether a request has the token of a repository, and responds if it has not: as if there were none.
func (f *Forge) mayRead(w http.ResponseWriter, r *http.Request, repo string) bool {
	f.mu.Lock()
	token := f.token[repo]
	f.mu.Unlock()
	if token != "" && r.Header.Get("Authorization") == "Bearer "+token {
		return true
	}
	http.Error(w, `{"message": "Not Found"}`, http.StatusNotFound)
	return false
}

// tags returns the tags of a repository.
func (f *Forge) tags(host, repo string) []string {
	out, err := exec.CommandContext(context.Background(), "git", "-C", f.repo(host, repo), "tag").Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// assetKeys returns the keys of all assets, whose indices are their ids.
func (f *Forge) assetKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.files))
}

// githubAPI serves the part of GitHub's API that lists tags and has the assets of releases.
func (f *Forge) githubAPI(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.EscapedPath(), "/repos/"), "/", 3)
	if len(parts) < 3 || !f.mayRead(w, r, GitHub+"/"+parts[0]+"/"+parts[1]) {
		return
	}
	repo, rest := parts[0]+"/"+parts[1], parts[2]
	keys := f.assetKeys()
	var id int
	if prefix, ok := strings.CutPrefix(rest, "git/matching-refs/tags/"); ok {
		prefix, _ = url.PathUnescape(prefix)
		refs := []map[string]string{}
		for _, tag := range f.tags(GitHub, repo) {
			if strings.HasPrefix(tag, prefix) {
				refs = append(refs, map[string]string{"ref": "refs/tags/" + tag})
			}
		}
		_ = json.NewEncoder(w).Encode(refs)
	} else if tag, ok := strings.CutPrefix(rest, "releases/tags/"); ok {
		tag, _ = url.PathUnescape(tag)
		assets := []map[string]any{}
		for i, key := range keys {
			if name, ok := strings.CutPrefix(key, GitHub+"/"+repo+"/"+tag+"/"); ok {
				assets = append(assets, map[string]any{"id": i, "name": name})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"assets": assets})
	} else if n, err := fmt.Sscanf(rest, "releases/assets/%d", &id); n == 1 && err == nil && id < len(keys) {
		http.Redirect(w, r, "https://"+GitHubAssets+"/github-production-release-asset/"+keys[id]+"?sig=x", http.StatusFound)
	} else {
		http.NotFound(w, r)
	}
}

// gitlabAPI serves the part of GitLab's API that lists tags and has the assets of releases.
func (f *Forge) gitlabAPI(w http.ResponseWriter, r *http.Request) {
	project, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v4/projects/"), "/")
	repo, _ := url.PathUnescape(project)
	if !f.mayRead(w, r, GitLab+"/"+repo) {
		return
	}
	if rest == "repository/tags" {
		tags := []map[string]string{}
		for _, tag := range f.tags(GitLab, repo) {
			if strings.HasPrefix(tag, strings.TrimPrefix(r.URL.Query().Get("search"), "^")) {
				tags = append(tags, map[string]string{"name": tag})
			}
		}
		_ = json.NewEncoder(w).Encode(tags)
		return
	}
	tag, asset, ok := strings.Cut(strings.TrimPrefix(rest, "releases/"), "/downloads/")
	tag, _ = url.PathUnescape(tag)
	key := GitLab + "/" + repo + "/" + tag + "/" + asset
	if !ok || !slices.Contains(f.assetKeys(), key) {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "https://"+GitLabAssets+"/"+key, http.StatusFound)
}
