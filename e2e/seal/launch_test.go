package seal

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// agent keeps a state and serves a port until a client has come.
const agent = `#!/bin/sh
printf x >>"$HOME/.codex/f" && cat "$HOME/.codex/f"
exec perl -MIO::Socket::INET -e '
	my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:8000") or die $!;
	my $c = $l->accept; print $c "from the sandbox"; close $c'
`

// An agent's state goes on in its next sandbox, and a port is published, where
// neither aileron nor the engine has root.
func TestAnAgentIsLaunchedWithoutRoot(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			p := rootless(t, engine)
			program := filepath.Join(filepath.Dir(p.project), "agent")
			must.Do(t, os.WriteFile(program, []byte(agent), 0o755))
			must.Do(t, os.Chown(p.project, harness.RootlessUser, harness.RootlessUser))
			for _, want := range []string{"x", "xx"} {
				port := harness.FreePort(t)
				ended := make(chan result, 1)
				go func() {
					ended <- p.run("launch", "--sandbox="+engine, "--image", image, "--dir", p.project, "--mount",
						program+":/usr/local/bin/codex:ro", "--port", fmt.Sprintf("%d:8000", port), "codex")
				}()
				got := ""
				harness.Poll(harness.Patience, 50*time.Millisecond, func() bool {
					got = read(port)
					return got != "" || len(ended) > 0
				})
				r := <-ended
				if r.code != 0 || r.out != want || got != "from the sandbox" {
					t.Errorf("exit %d, it has %q, want %q; its port has %q\n%s", r.code, r.out, want, got, r.err)
				}
			}
			r := p.must("sandbox", "prune", "--state", "--yes", "--sandbox="+engine)
			if !strings.Contains(r.err, "removed 1 state\n") {
				t.Errorf("prune: %s", r.err)
			}
		})
	}
}

// read returns what a port of this host sends; "" if nothing listens behind it.
func read(port int) string {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return ""
	}
	defer c.Close()
	data, _ := io.ReadAll(c)
	return string(data)
}
