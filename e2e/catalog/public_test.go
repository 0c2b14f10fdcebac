package catalog

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Without a token a person can work on public repositories, and push to none.
func TestPublicRepositoriesNeedNoToken(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Services()
	recipes.Need(t, "podman", image)
	p := newPerson(t)
	s := stub.Start(t, stub.Script{Services: map[string]http.Handler{
		"github.com": services.Unguarded(services.Repositories(t, "", "acme/tool.git"))}})
	if out, errs, code := p.run("connector", "install", "github-public", "--yes"); code != 0 {
		t.Fatalf("connector install ends with %d\n%s%s", code, out, errs)
	}
	out, errs, code := p.run("sandbox", "run", "--sandbox=podman", "--image", image.Ref, "--dir", p.project,
		"--upstream-ca", s.Roots, "--resolve", "github.com:443:"+s.Addr, "--", "bash", "-euc",
		`export HOME=/tmp GIT_TERMINAL_PROMPT=0; git clone -q https://github.com/acme/tool /tmp/c; cd /tmp/c; cat README
		git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m two; ! git push origin HEAD 2>&1`)
	if code != 0 || !strings.Contains(out, "the first file") || !strings.Contains(out, "403") {
		t.Errorf("the sandbox ends with %d\n%s%s", code, out, errs)
	}
	for _, r := range s.Seen() {
		if strings.Contains(r.Path+r.Query, "receive-pack") || r.Auth() != "" {
			t.Errorf("the origin got %s %s?%s with %q", r.Method, r.Path, r.Query, r.Auth())
		}
	}
}
