package documents

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// cluster stands in for the API server of Kubernetes, which does not run here: it has a namespace. The paths are those
// that kubectl asks for, and no others.
type cluster struct {
	mu   sync.Mutex
	seen []string
}

var clusterPaths = map[string]string{
	"GET /version": `{"major":"1","minor":"31","gitVersion":"v1.31.0"}`,
	"GET /api":     `{"kind":"APIVersions","versions":["v1"]}`,
	"GET /apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"GET /api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","singularName":"",
		"namespaced":false,"kind":"Namespace","verbs":["delete","get","list"],"shortNames":["ns"]}]}`,
	"GET /api/v1/namespaces": `{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":[{"kind":"Namespace",
		"apiVersion":"v1","metadata":{"name":"web"}}]}`,
	"DELETE /api/v1/namespaces/web": `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.Path
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, strings.TrimSpace(key+" "+string(body)))
	text, ok := clusterPaths[key]
	switch {
	case r.Header.Get("Authorization") != "Bearer "+secret:
		w.WriteHeader(http.StatusUnauthorized)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

// kubectl finds out what a cluster has, lists it and deletes some of it, by a connector that is made of Kubernetes'
// document: paths are without the slash that they have there, and a DELETE has a body.
func TestKubectlFindsItsWay(t *testing.T) {
	t.Parallel()
	harness.Turn(t)
	harness.NeedEngine(t, "podman")
	recipes.Need(t, "podman", recipes.Kubectl())
	d := documents["kubernetes"]
	d.kind, d.query, d.client = "bearer", "timeout", ""
	d.calls = nil
	for _, operation := range []string{"GET /version/", "GET /api/", "GET /apis/", "GET /api/v1/",
		"GET /api/v1/namespaces", "DELETE /api/v1/namespaces/{name}"} {
		d.calls = append(d.calls, call{operation, "{}"})
	}
	home, project := must.ShortDir(t), must.ShortDir(t)
	host := d.install(t, home, project, "kube", d.fetch(t, ""))
	api := &cluster{}
	server := stub.Start(t, stub.Script{Streams: true, Services: map[string]http.Handler{host: api}})
	harness.ShareImages(t, home)
	out := aileron(t, home, "sandbox", "run", "--sandbox=podman", "--image", d.image().Ref, "--dir", project,
		"--upstream-ca", server.Roots, "--resolve", host+":443:"+server.Addr, "--", "sh", "-c", `
		export HOME=/tmp
		k() { kubectl --server https://`+host+` --token placeholder "$@" 2>&1; }
		k get namespaces -o name
		k version | grep v1.31
		k delete namespace web --wait=false
		k get --raw /apis/apps/v1 || true`)
	for _, want := range []string{"namespace/web\n", "v1.31.0", `namespace "web" deleted`, "Forbidden"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl does not print %q:\n%s", want, out)
		}
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for key := range clusterPaths {
		if !slices.ContainsFunc(api.seen, func(seen string) bool { return strings.HasPrefix(seen+" ", key+" ") }) {
			t.Errorf("kubectl did not send %s: %q", key, api.seen)
		}
	}
	if !slices.ContainsFunc(api.seen, func(seen string) bool {
		return strings.HasPrefix(seen, "DELETE ") &&
			strings.Contains(seen, "propagationPolicy")
	}) {
		t.Errorf("the DELETE has no body: %q", api.seen)
	}
	if slices.ContainsFunc(api.seen, func(seen string) bool { return strings.Contains(seen, "/apis/apps") }) {
		t.Errorf("what no operation allows is sent: %q", api.seen)
	}
}
