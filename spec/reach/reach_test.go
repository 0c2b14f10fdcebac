package reach

import "testing"

func TestWhatReachesInside(t *testing.T) {
	for _, c := range []struct {
		name, path string
		want       bool
	}{
		{"connectCoreV1GetNamespacedPodExec", "/x", true}, {"pods.exec", "/x", true}, {"ContainerAttach", "/x", true},
		{"connectCoreV1GetNamespacedServiceProxyWithPath", "/x", true}, {"podPortforward", "/x", true},
		{"pods.port-forward", "/x", true}, {"x", "/pods/{name}/portforward", true}, {"x", "/containers/{id}/EXEC", true},
		{"x", "/pods/{name}/proxy/{path...}", true}, {"exec", "/x", true},
		{"executions.list", "/executions", false}, {"listAttachments", "/attachments/{attach}", false},
		{"proxies.get", "/proxies/{exec}", false}, {"x", "/x", false}, {"", "", false},
	} {
		if got := Inside(c.name, c.path); got != c.want {
			t.Errorf("%s %s: %v", c.name, c.path, got)
		}
	}
}

func TestAPathOfAnyEndMayReachInside(t *testing.T) {
	for path, want := range map[string]bool{
		"/{all...}": true, "/{a}/{all...}": true, "/api/v1/{all...}": true, "/apis/{group}/{all...}": true,
		"/clusters/{id}/{all...}": true, "/v1/k8s/{all...}": true, "/api/v1/namespaces/{n}/pods/{all...}": true,
		"/x/y/z/Containers/{id}/{all...}": true, "/api/v1/namespaces/{n}/pods/{name}/{sub}": true,
		"/containers/{id}/{action}": true, "/instances/{zone}/{id}/{action}": true, "/containers/{id}/logs/{a}/{b}": false,
		"/services/{team}/{hook}": false, "/pods/{name}/log": false,
		"/repos/{o}/{r}/contents/{path...}": false, "/{g}/{p}/-/raw/{ref}/{path...}": false, "/pods/{id}": false,
		"/": false, "": false, "/{a}": false,
	} {
		if got := Below(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
