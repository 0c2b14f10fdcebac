package services

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+Token))
}

// basicToken is what the credential of git has in common whatever the user is.
func basicToken() string { return basic("x-access-token")[len("Basic "):][20:40] }

// addCodeHosts adds GitHub and GitLab, with repositories of the host's own git.
func (o *Origin) addCodeHosts(t *testing.T, files string) {
	t.Helper()
	o.root = t.TempDir()
	repositories := repositoriesIn(t, o.root, files, "acme/tool.git", "acme/sub/group/tool.git")
	o.services["api.github.com"] = guarded("Authorization", "Bearer "+Token, githubAPI())
	github := http.NewServeMux()
	github.Handle("/", guarded("Authorization", basic("x-access-token"), repositories))
	github.Handle("POST /{owner}/{repo}/info/lfs/objects/batch", guarded("Authorization", basic("x-access-token"),
		lfs("https://github-cloud.githubusercontent.com/alambic/media/1/ab/cd?X-Amz-Signature=s")))
	github.Handle("GET /{owner}/{repo}/releases/download/{tag}/{file}", Unguarded(redirect(assetURL)))
	github.Handle("GET /{owner}/{repo}/archive/{ref...}",
		Unguarded(redirect("https://codeload.github.com/acme/tool/tar.gz/refs/heads/main")))
	o.services["github.com"] = github
	o.services["release-assets.githubusercontent.com"] = text("of a release")
	o.services["codeload.github.com"] = text("of an archive")
	o.services["raw.githubusercontent.com"] = text("of a file")
	o.services["github-cloud.githubusercontent.com"] = text(lfsObject)
	o.services["results-receiver.actions.githubusercontent.com"] = packed(zipped(t,
		file{"tool/1_s.txt", date + " of a log\n"}))
	o.services["productionresultssa7.blob.core.windows.net"] = packed(zipped(t, file{"report.txt", "of an artifact\n"}))
	gitlab := http.NewServeMux()
	gitlab.Handle("/", guarded("Authorization", basic("oauth2"), repositories))
	gitlab.Handle("POST /{group}/{project}/info/lfs/objects/batch", guarded("Authorization", basic("oauth2"),
		lfs("https://gitlab.com/acme/tool.git/gitlab-lfs/objects/"+sha256hex([]byte(lfsObject+"\n")))))
	gitlab.Handle("GET /{group}/{project}/gitlab-lfs/objects/{oid}", guarded("Authorization", basic("oauth2"),
		redirect("https://storage.googleapis.com/gitlab-gprd-lfs-objects/ab/cd?Signature=s")))
	o.services["gitlab.com"] = gitlab
}

func packed(data []byte) http.Handler {
	return Unguarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
}

// redirect answers with another URL.
func redirect(to string) http.Handler { return http.RedirectHandler(to, http.StatusFound) }

const assetURL = "https://release-assets.githubusercontent.com/github-production-release-asset/1/abc?" +
	"sp=r&sig=s%2Bt&jwt=x"

// lfsObject is the only object of Git LFS, without the end of its line.
const lfsObject = "of an LFS object"

// lfs answers a batch request for the object.
func lfs(href string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
		_, _ = fmt.Fprintf(w, `{"transfer":"basic","objects":[{"oid":%q,"size":%d,"authenticated":true,`+
			`"actions":{"download":{"href":%q}}}]}`, sha256hex([]byte(lfsObject+"\n")), len(lfsObject)+1, href)
	})
}

// newRepositories serves bare repositories of the names by smart HTTP.
func Repositories(t *testing.T, files string, names ...string) http.Handler {
	t.Helper()
	return repositoriesIn(t, t.TempDir(), files, names...)
}

func repositoriesIn(t *testing.T, root, files string, names ...string) http.Handler {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("there is no git: scripts/prepare --tests installs it")
	}
	work := t.TempDir()
	write(t, "[http]\n\treceivepack = true\n[user]\n\tname = a\n\temail = a@example.com\n[safe]\n\tdirectory = *\n[gc]\n"+
		"\tauto = 0\n[init]\n\tdefaultBranch = main\n", root, "config")
	if files == "" {
		write(t, "the first file\n", work, "README")
	} else if err := os.CopyFS(work, os.DirFS(files)); err != nil {
		t.Fatal(err)
	}
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(root, "config"),
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}
	for _, name := range append([]string{""}, names...) {
		script := `git init -q && git add . && git commit -qm one`
		if name != "" {
			script = `git clone -q --bare . "$1"`
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "-", filepath.Join(root, name))
		cmd.Dir, cmd.Env = work, append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make the repository %s: %v\n%s", name, err, out)
		}
	}
	backend := cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: env, Stderr: io.Discard}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TransferEncoding = nil // net/http/cgi refuses what git http-backend takes: it reads to the end
		if protocol := r.Header.Get("Git-Protocol"); !strings.HasPrefix(protocol, "version=2") &&
			strings.HasSuffix(r.URL.Path, "/info/refs") && strings.Contains(r.URL.RawQuery, "upload-pack") {
			http.Error(w, "the request lacks Git-Protocol", http.StatusBadRequest)
			return
		}
		backend.ServeHTTP(w, r)
	})
}
