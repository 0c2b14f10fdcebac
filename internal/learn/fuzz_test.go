package learn

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
)

// Whatever a sandbox sends: what is made of it is a template, it has the path that it was made of, and a shape has no
// segment that is a value.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"/repos/acme/widget/issues/7", "/@babel%2fcore", "/github.com/!acme/x/@v/v1.0.0.zip",
		"/", "/a//b", "/%2e%2e/x", "/a;b/{c}", "/v1/hooks/ghp_16C7e42F292c6912E7710c838347Ae178B4a", "/é/%zz"} {
		f.Add(path, "GET")
	}
	f.Fuzz(func(t *testing.T, path, method string) {
		for _, part := range strings.Split(strings.TrimPrefix(Shape(path), "/"), "/") {
			if isToken(part) {
				t.Fatalf("the shape of %q is %q", path, Shape(path))
			}
		}
		var tree Tree
		if !tree.Add(Request{Host: "a.example", Port: 443, Method: method, Path: path, Row: "r"}) {
			return
		}
		ops := tree.Operations()
		if len(ops) != 1 {
			t.Fatalf("%q is %d operations", path, len(ops))
		}
		template := ops[0].Template()
		if _, err := spec.ParseTemplate(template); err != nil {
			t.Fatalf("%q is %q: %v", path, template, err)
		}
		if !ops[0].covers(strings.Split(path[1:], "/")) {
			t.Fatalf("%q does not have %q", template, path)
		}
	})
}

// BenchmarkTree adds the paths of a registry, and some of an API.
func BenchmarkTree(b *testing.B) {
	paths := repeat("/%s/-/x-1.0.0.tgz", 500)
	for b.Loop() {
		var tree Tree
		for i := range 100_000 {
			tree.Add(Request{Host: "a.example", Port: 443, Method: "GET", Path: paths[i%len(paths)], Row: "r"})
		}
		tree.Operations()
	}
}
