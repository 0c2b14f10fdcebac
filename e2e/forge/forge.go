// Package forge holds a stand-in for the places where connectors are published:
// github.com with its API and the host of its releases' assets, gitlab.com with its
// API and its host of artifacts, and a hub. It serves TLS under their real names on loopback, and the
// tags of its repositories are served by git itself.
//
// [Start] starts it, [Forge.Publish] publishes a version, and [Forge.Flags] are the
// flags with which aileron reaches it.
package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// The hosts that a Forge stands in for.
const (
	GitHub       = "github.com"
	GitHubAPI    = "api.github.com"
	GitHubAssets = "release-assets.githubusercontent.com"
	GitLab       = "gitlab.com"
	GitLabAssets = "cdn.artifacts.gitlab-static.net"
	Hub          = "hub.example"
)

// API is the host of the service that the published connectors are for.
const API = "api.tracker.example"

// Forge is the stand-in.
type Forge struct {
	Server *stub.Server

	// Faults, if not nil, may respond to a request in place of the stand-in. It
	// reports whether it did.
	Faults func(w http.ResponseWriter, r *http.Request) bool

	Groups []string // of GitLab, below a group: owner/name is no project then

	repos string // bare repositories, by host/owner/name.git
	mu    sync.Mutex
	token map[string]string // of the repositories that are not public, by host/owner/name
	files map[string][]byte // assets, by the path of their URL with the host before it
	hub   map[string][]string
	home  string
}

// Start serves until the test ends. It skips the test where there is no git.
func Start(t testing.TB) *Forge {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git, which serves the tags of the stand-in's repositories")
	}
	f := &Forge{repos: t.TempDir(), home: t.TempDir(), files: map[string][]byte{}, hub: map[string][]string{},
		token: map[string]string{}}
	services := map[string]http.Handler{}
	for host, handle := range map[string]http.HandlerFunc{
		GitHub: f.github, GitHubAPI: f.githubAPI, GitHubAssets: f.assets,
		GitLab: f.gitlab, GitLabAssets: f.assets, Hub: f.serveHub,
		API: func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "this is %s %s\n", r.Method, r.URL.Path) },
	} {
		services[host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f.Faults == nil || !f.Faults(w, r) {
				handle(w, r)
			}
		})
	}
	f.Server = stub.Start(t, stub.Script{Services: services})
	return f
}

// Flags returns the flags with which aileron reaches the stand-in, and the real names
// lead nowhere else.
func (f *Forge) Flags() []string {
	flags := []string{"--upstream-ca", f.Server.Roots}
	for _, host := range []string{GitHub, GitHubAPI, GitHubAssets, GitLab, GitLabAssets, Hub, API} {
		flags = append(flags, "--resolve", host+":443:"+f.Server.Addr)
	}
	return flags
}

// Config is a config.toml that names the hub.
func Config() string { return "[sources]\nhub = \"https://" + Hub + "\"\n" }

// Publish publishes an asset of a version: it makes the tag, and the release.
func (f *Forge) Publish(t testing.TB, fqn, version, asset string, content []byte) {
	t.Helper()
	scheme, path, _ := strings.Cut(fqn, "://")
	f.mu.Lock()
	defer f.mu.Unlock()
	if scheme == "hub" {
		f.hub[path] = append(f.hub[path], version)
		f.files[Hub+"/api/v1/"+path+"/"+version+"/"+asset] = content
		return
	}
	host, repo, tag := f.place(fqn, version)
	f.tag(t, host, repo, tag)
	f.files[host+"/"+repo+"/"+tag+"/"+asset] = content
}

// Tag makes the tag of a version, without a release.
func (f *Forge) Tag(t testing.TB, fqn, version string) {
	t.Helper()
	host, repo, tag := f.place(fqn, version)
	f.tag(t, host, repo, tag)
}

// place returns where a version of a connector of a forge is.
func (f *Forge) place(fqn, version string) (host, repo, tag string) {
	scheme, path, _ := strings.Cut(fqn, "://")
	parts := strings.Split(path, "/")
	host = map[string]string{"github": GitHub, "gitlab": GitLab}[scheme]
	n := 2
	for n < len(parts) && slices.Contains(f.Groups, strings.Join(parts[:n], "/")) {
		n++
	}
	tag = strings.Join(append(parts[n:len(parts):len(parts)], "v"+version), "/")
	return host, strings.Join(parts[:n], "/"), tag
}

func (f *Forge) repo(host, repo string) string { return filepath.Join(f.repos, host, repo+".git") }

// tag makes a tag in a bare repository, which is made if there is none.
func (f *Forge) tag(t testing.TB, host, repo, tag string) {
	t.Helper()
	dir := f.repo(host, repo)
	if _, err := os.Stat(dir); err != nil {
		f.git(t, "init", "-q", "--bare", dir)
	}
	tree := f.git(t, "-C", dir, "hash-object", "-t", "tree", "-w", "/dev/null")
	commit := f.git(t, "-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", tree, "-m", tag)
	f.git(t, "-C", dir, "update-ref", "refs/tags/"+tag, commit)
}

// git runs git without the settings of the person who runs the test.
func (f *Forge) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// github redirects to the host of assets, as GitHub does, with a signature in the
// query.
func (f *Forge) github(w http.ResponseWriter, r *http.Request) {
	f.forge(w, r, GitHub, "/releases/download/", "/", "https://"+GitHubAssets+"/github-production-release-asset/")
}

func (f *Forge) gitlab(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api/v4/") {
		f.gitlabAPI(w, r)
		return
	}
	f.forge(w, r, GitLab, "/-/releases/", "/downloads/", "https://"+GitLabAssets+"/")
}

// forge serves a repository, and redirects to the assets of its releases. The tag is
// one segment of the path: GitHub also takes a plain slash, which GitLab does not.
func (f *Forge) forge(w http.ResponseWriter, r *http.Request, host, releases, downloads, assets string) {
	if repo, _, isGit := strings.Cut(r.URL.Path, ".git/"); isGit {
		f.serveGit(w, r, host, repo)
		return
	}
	repo, rest, ok := strings.Cut(r.URL.EscapedPath(), releases)
	if _, err := os.Stat(f.repo(host, repo)); err != nil || f.isPrivate(host+repo) {
		http.NotFound(w, r)
		return
	}
	tag, asset, whole := strings.Cut(rest, downloads)
	if !ok || !whole {
		http.NotFound(w, r)
		return
	}
	unescape := strings.NewReplacer("%2F", "/", "%2B", "+")
	key := host + repo + "/" + unescape.Replace(tag) + "/" + asset
	f.mu.Lock()
	_, ok = f.files[key]
	f.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, assets+key+"?sig=signed-for-this-download", http.StatusFound)
}

// assets serves what a forge redirects to.
func (f *Forge) assets(w http.ResponseWriter, r *http.Request) {
	f.send(w, r, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"), "github-production-release-asset/"))
}

func (f *Forge) send(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	content, ok := f.files[key]
	f.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write(content)
}

// serveHub serves what has been published on the hub.
func (f *Forge) serveHub(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/versions"); ok {
		f.mu.Lock()
		versions, ok := f.hub[path]
		f.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		var entries []string
		for _, v := range versions {
			entries = append(entries, fmt.Sprintf(`{"version": %q}`, v))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"versions": [%s]}`, strings.Join(entries, ", "))
		return
	}
	f.send(w, r, Hub+r.URL.Path)
}

// serveGit serves a repository with git http-backend.
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request, host, repo string) {
	if _, err := os.Stat(f.repo(host, repo)); err != nil || f.isPrivate(host+repo) {
		w.Header().Set("WWW-Authenticate", `Basic realm="stand-in"`) // as GitHub does
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	git, _ := exec.LookPath("git")
	(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: "/",
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Join(f.repos, host), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + f.home,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
		},
	}).ServeHTTP(w, r)
}
