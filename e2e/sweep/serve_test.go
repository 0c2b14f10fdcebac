package sweep

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/store"
)

// serveOthers runs aileron serve with a secret of a file and one of a program, and programs and files that are refused.
func (p *person) serveOthers() {
	p.t.Helper()
	grants, run := filepath.Join(p.in, "grants"), filepath.Join(p.project, "run")
	must.Do(p.t, os.Mkdir(grants, 0o700))
	var document strings.Builder
	for name, from := range map[string]string{
		"bearer": fmt.Sprintf("secret.file = %q", p.give("served", p.canary.secret("bearer"))),
		"basic": fmt.Sprintf("secret.exec = [\"/bin/cat\", %q]\nsecret.username = \"user\"",
			p.give("printed", p.canary.secret("basic"))),
		"query": fmt.Sprintf("secret.file = %q", p.give("two-lines", p.canary.secret("query")+"\nmore")),
		"path": fmt.Sprintf("secret.exec = [\"/bin/sh\", \"-c\", %q]", "cat "+p.give("failed", p.canary.secret("path"))+
			"; exit 3"),
	} {
		dir := filepath.Join("testdata", "connectors", name)
		harness.Copy(p.t, dir, filepath.Join(grants, name))
		fmt.Fprintf(&document, "[[connector]]\ndir = %q\nhash = %q\nidentity = \"work\"\n%s\n", name,
			must.Get(store.Read(dir))(p.t).Hash, from)
	}
	p.write(filepath.Join(grants, "grants.toml"), document.String())
	health := filepath.Join(p.project, "health")
	flags := []string{"serve", "--dir", run, "--grants", grants, "--health", "unix:" + health, "--upstream-ca",
		p.origin.Roots}
	for _, host := range hosts {
		flags = append(flags, "--resolve", fmt.Sprintf("%s.sweep.test:443:%s", host, p.origin.Addr))
	}
	cmd, said := p.command(flags...)
	out := &must.Output{}
	cmd.Stdout = io.MultiWriter(&said.out, out)
	must.Do(p.t, cmd.Start())
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	harness.WaitFor(p.t, "aileron serve is ready", func() bool { return strings.Contains(out.String(), `"msg":"ready"`) })
	s := &session{p: p, proxy: must.Get(url.Parse("http://127.0.0.1:3128"))(p.t), roots: x509.NewCertPool(),
		dial: dialer(filepath.Join(run, "proxy.sock"))}
	s.roots.AppendCertsFromPEM(must.Get(os.ReadFile(filepath.Join(run, "public", "ca.pem")))(p.t))
	client := s.client(false)
	s.want(s.send(client, "POST", "bearer", "/v1/echo/"+trace), 200, "HTTP/1.1")
	s.want(s.send(client, "GET", "basic", "/v1/forms"), 200, "HTTP/1.1")
	s.want(s.send(client, "GET", "query", "/v1/forms"), 403, "HTTP/1.1")
	s.want(s.send(client, "GET", "path", paths["path"]+"/forms"), 503, "HTTP/1.1")
	client.CloseIdleConnections()
	for _, path := range []string{"readyz", "metrics"} {
		probe := &http.Client{Transport: &http.Transport{DialContext: dialer(health), DisableKeepAlives: true}}
		res := must.Get(probe.Get("http://health/" + path))(p.t) //nolint:bodyclose // closed below
		page := must.Get(io.ReadAll(res.Body))(p.t)
		must.Do(p.t, res.Body.Close())
		p.canary.judge(p.t, "/"+path+" of aileron serve", page, everything)
	}
	p.must("serve", "--check", "--dir", run)
	p.searchFiles("while aileron serve runs")
	must.Do(p.t, cmd.Process.Signal(syscall.SIGTERM))
	must.Do(p.t, cmd.Wait())
	pass := []string{"--passphrase-file", filepath.Join(p.in, "passphrase")}
	p.must(append([]string{"binding", "setup", fqn("bearer"), "--identity", "printed",
		"--secret-exec", "cat " + filepath.Join(p.in, "served")}, pass...)...)
	p.refused("", append([]string{"binding", "setup", fqn("bearer"), "--identity", "none",
		"--secret-exec", "cat " + filepath.Join(p.in, "two-lines")}, pass...)...)
	p.must("binding", "list")
	p.must("binding", "inspect", "bearer/bearer/printed")
	p.must("binding", "revoke", "bearer/bearer/printed", "--yes")
}

func dialer(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}
