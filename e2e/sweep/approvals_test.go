package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// ask sends a request that needs an approval, with canaries in all its parts, and calls decide while it waits, with its
// id.
func (s *session) ask(name string, decide func(id string)) (status int) {
	s.p.t.Helper()
	client := s.client(true)
	defer client.CloseIdleConnections()
	var sent sync.WaitGroup
	c := s.p.canary
	ctx, leave := context.WithCancel(s.p.t.Context())
	defer leave()
	sent.Go(func() {
		target := fmt.Sprintf("https://bearer.sweep.test/v1/ask/%s-%s?q=%s", trace, name, c.text("a query"))
		body := strings.NewReader(`{"text":"` + c.text("a request body") + `"}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, body)
		if err != nil {
			s.p.t.Error(err)
			return
		}
		req.Header = http.Header{"X-Sweep": {c.text("a request field")}, "Content-Type": {"application/json"},
			"Authorization": {"Bearer " + c.text("a request field")}}
		res, err := client.Do(req)
		if err != nil {
			return // it has left
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		status = res.StatusCode
	})
	defer sent.Wait()
	id := s.waiting("/v1/ask/" + trace + "-" + name)
	decide(id)
	if name == left {
		leave()
		return 0
	}
	sent.Wait()
	return status
}

// waiting returns the id of the request that waits for a path.
func (s *session) waiting(path string) (id string) {
	s.p.t.Helper()
	harness.WaitFor(s.p.t, path+" waits for an approval", func() bool {
		said := s.p.must("approval", "list", "--json")
		said.bodies = true // the owner sees what the agent asks for
		var all []struct{ ID, Path, State string }
		must.Do(s.p.t, json.Unmarshal(said.out.Bytes(), &all))
		for _, q := range all {
			if q.Path == path && q.State == "pending" {
				id = q.ID
			}
		}
		return id != ""
	})
	return id
}

// approvals has requests approved and denied in every way, and leaves one that waits.
func (s *session) approvals() {
	p := s.p
	shown := func(args ...string) string {
		said := p.must(append([]string{"approval"}, args...)...)
		said.bodies = true
		return said.out.String()
	}
	s.want(s.ask("once", func(id string) {
		shown("list")
		if text := shown("show", id); !strings.Contains(text, p.canary.text("a request body")) {
			p.t.Error("approval show has no body: the search finds nothing there")
		}
		shown("show", id, "--json")
		shown("approve", id)
	}), 200, "approved once")
	s.want(s.ask("deny", func(id string) { shown("deny", id, "--json") }), 403, "denied")
	for _, scope := range []string{"session", "always"} {
		var kept string
		s.want(s.ask(scope, func(id string) {
			kept = id
			shown("approve", id, "--for", scope, "--yes")
		}), 200, "approved for "+scope)
		p.searchFiles("while something is approved for " + scope)
		shown("revoke", kept)
	}
	cmd, said := p.command("approval", "list", "-f", "--json")
	said.bodies = true
	follows := must.Get(os.Create(filepath.Join(p.t.TempDir(), "follows")))(p.t)
	defer follows.Close()
	cmd.Stdout = follows
	must.Do(p.t, cmd.Start())
	s.ask(left, func(id string) {
		harness.WaitFor(p.t, "approval list -f shows what waits", func() bool {
			return strings.Contains(string(must.Get(os.ReadFile(follows.Name()))(p.t)), id)
		})
	})
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	said.out.Write(must.Get(os.ReadFile(follows.Name()))(p.t))
}

// left is the name of the request whose client leaves.
const left = "left"
