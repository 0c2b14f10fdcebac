package proxy

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// An escaped slash passes where its operation declares it, and is sent as it came. Whatever else is in doubt does not.
func TestADeclaredEscapedSlashPassesAsItIs(t *testing.T) {
	t.Parallel()
	c, err := spec.Parse([]byte(`{"schema_version": "aileron.connector.v1",
	 "connector": {"fqn": "github://acme/x", "version": "1.0.0"}, "tools": [{"name": "x", "description": "X",
	 "operations": [{"name": "a", "method": "GET", "path": "/a/{ref}/end", "hosts": ["h.test"], "credential": "bearer",
	   "escaped_slash": true},
	  {"name": "b", "method": "GET", "path": "/b/{ref}", "hosts": ["h.test"], "credential": "bearer"},
	  {"name": "c", "method": "GET", "hosts": ["other.test"]}]}]}`))
	must.Do(t, err)
	ix := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for path, want := range map[string]Reason{
		"/a/feature%2Fx/end": "", "/a/feature%2fx/end": "", "/a/x/end": "", "/a/%C3%A4%2Fx/end": "", "/a/x%2Fy/end?q=1": "",
		"/b/feature%2Fx": ReasonMalformed, "/a%2Fx/end": ReasonMalformed, "/a/x%2F..%2Fy/end": ReasonMalformed,
		"/a/x%2f../end": ReasonMalformed, "/a/x%252Fy/end": ReasonMalformed, "/a/x%2F%252Fy/end": ReasonMalformed,
		"/a/x%2F%2e%2e/end": ReasonMalformed, "/a/x%2F/end": ReasonMalformed, "/a//x%2Fy/end": ReasonMalformed,
		"/a/x%2Fy%2%2Fz/end": ReasonMalformed, "/a/x%2Fy%5Cz/end": ReasonMalformed, "/a/x%2F%41/end": ReasonMalformed,
		"/a/x%2F%C0%AF/end": ReasonMalformed, "/a/x%2F%0a/end": ReasonMalformed, "/a/x%2Fy;z/end": ReasonMalformed,
		"/a/x%2Fy/end?a;b": ReasonMalformed, "/a/./x%2Fy/end": ReasonMalformed,
	} {
		d := Decide(Question{Index: ix, Authority: Authority{Host: "h.test", Port: 443}, Scheme: "https", Method: "GET",
			Target: path, Host: "h.test"})
		if d.Reason != want || want == "" && d.Verdict != Allow {
			t.Errorf("%s is %v %q, want %q", path, d.Verdict, d.Reason, want)
		}
	}
}
