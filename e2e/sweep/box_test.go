package sweep

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// inTheBox is what the command of a sandbox does: requests with canaries, by the proxy and past it, and one on a port
// that is published.
const inTheBox = `
	curl -sS -o /dev/null -H "X-Sweep: $FIELD" --data "$BODY" "https://bearer.sweep.test/v1/echo/$TRACE?q=$QUERY"
	env -u HTTPS_PROXY -u https_proxy curl -sS -o /dev/null --noproxy '*' "https://bearer.sweep.test/v1/forms?q=$QUERY"
	env -u HTTPS_PROXY -u https_proxy curl -sS --noproxy '*' -H "X-A: $FIELD" "http://$TRACE.example:81/?$QUERY"
	curl -sS -o /dev/null "https://bearer.sweep.test/admin/$TRACE?q=$QUERY"
	curl -sS -o /dev/null "https://$TRACE.example/?$QUERY"
	curl -sS -o /dev/null -H "Authorization: Bearer $FIELD" "$AILERON_API_URL/session?$QUERY"
	printf '#!/bin/sh\n' > script.sh
	touch up; until [ -e down ]; do sleep 0.1; done; exit 3`

// projectFile asks for variables of the sandbox.
const projectFile = ".aileron.toml"

// sandboxes runs commands in sandboxes, mediated and not.
func (p *person) sandboxes() {
	p.t.Helper()
	c := p.canary
	p.must("sandbox", "check", "--sandbox=podman", "--agent=sh", "--dir", p.project)
	p.must("sandbox", "prune", "--sandbox=podman")
	p.must("sandbox", "apparmor")
	composed := filepath.Join(p.dir, "composed")
	must.Do(p.t, os.MkdirAll(composed, 0o700))
	p.must("sandbox", "init", "--dir", composed)
	p.write(filepath.Join(composed, ".devcontainer", "devcontainer.json"),
		`{"image": "x", "containerEnv": {"A": "${localEnv:A_REQUEST_BODY}"}, "mounts": ["${localEnv:A_REQUEST_BODY}"]}`)
	p.run("sandbox", "plan", "--dir", composed)
	p.run("sandbox", "plan", "--dir", composed, "--json")
	p.refused("", "sandbox", "build", "--sandbox=podman", "--dir", p.project, "--agent", "no-such-agent")
	// A value on a command line is on the screen already; the consents to a file must not have it.
	var variables strings.Builder
	for name, value := range map[string]string{"FIELD": c.text("a request field"), "BODY": c.text("a request body"),
		"QUERY": c.text("a query"), "VARIABLE": c.text("a variable's value"), "TRACE": trace} {
		fmt.Fprintf(&variables, "%s = %q\n", name, value)
	}
	p.write(filepath.Join(p.project, projectFile), "[env]\n"+variables.String())
	port := strconv.Itoa(harness.FreePort(p.t))
	args := append([]string{"sandbox", "run", "--sandbox=podman", "--detach", "--trust-project", "--dir", p.project,
		"--port", port + ":8000",
		"--capture", filepath.Join(p.dir, "box-"+capture)}, p.reach()...)
	id := strings.TrimSpace(p.must(append(args, "--", "sh", "-c", inTheBox)...).out.String())
	up := func() bool { _, err := os.Stat(filepath.Join(p.project, "up")); return err == nil }
	harness.WaitFor(p.t, "the requests of a sandbox", up)
	if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		_ = conn.Close()
	}
	p.searchFiles("while a sandbox runs")
	if n := p.searchProcesses("while a sandbox runs"); n < 3 {
		p.t.Errorf("%d processes of a sandbox were searched", n)
	}
	p.run("session", "show", id)
	p.run("ca", "show", id)
	p.write(filepath.Join(p.project, "down"), "")
	harness.WaitFor(p.t, "the end of a sandbox", func() bool {
		return strings.Contains(p.must("session", "show", id).out.String(), "state    ended")
	})
	p.run("session", "attach", id)
	p.must("session", "logs", id)
	p.run("launch", "no-such-agent")
	p.must(append([]string{"sandbox", "run", "--sandbox=podman", "--sandbox-proxy=off", "--dir", p.project,
		"--passphrase-file", filepath.Join(p.in, "passphrase"), "--trust-project"}, "--",
		"true")...)
}

// crash ends a session as a defect would, with a request under way: its stack is printed.
func (p *person) crash() {
	p.t.Helper()
	s := p.serve("--egress=deny")
	client := s.client(false)
	defer client.CloseIdleConnections()
	before := p.stalled()
	asked := make(chan int, 1)
	go func() { asked <- s.send(client, "GET", "bearer", "/v1/stall") }()
	harness.WaitFor(p.t, "a request under way", func() bool { return p.stalled() > before })
	s.end(syscall.SIGABRT)
	<-asked
}

// stalled counts the requests that the origin does not answer.
func (p *person) stalled() (n int) {
	for _, seen := range p.origin.Seen() {
		if strings.HasSuffix(seen.Path, "/stall") {
			n++
		}
	}
	return n
}
