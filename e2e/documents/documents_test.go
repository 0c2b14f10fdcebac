// Package documents makes connectors of the documents of real APIs, and calls their operations from a sandbox: by the
// commands, by the run API, and by the APIs' own libraries. The service is a stub that Prism, a program of others,
// makes of the same document, and that judges each request by it.
package documents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var program string // the built aileron

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "documents", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		program = filepath.Join(dir, "aileron")
	}))
}

const (
	passphrase = "correct horse battery"
	secret     = "sk_live_0123456789abcdefghij"
)

// source is where a document is from: a file of a package of npm, or of a module of Go with that sum.
type source struct{ module, sum, file string }

// call is a call of an operation, by the method and path that the document has.
type call struct{ operation, args string }

// document is that of an API.
type document struct {
	source
	host   string // "": the document's
	kind   string // of the credential; "": the document's
	user   string // of a credential that has one
	query  string // a name that the query of every operation may have; "": those of the document alone
	client string // a program that makes the same calls with the API's own library; "": there is none
	needs  string // the package of the library
	makes  int    // calls of the client; 0: as many as there are
	image  func() recipes.Image
	calls  []call
}

// Requests by name that a connector of a document makes are valid by that document.
func TestRequestsAreValidByTheirDocument(t *testing.T) {
	t.Parallel()
	for name, d := range documents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Turn(t)
			harness.NeedEngine(t, "podman")
			for _, tool := range []string{"npm", "node"} {
				if _, err := exec.LookPath(tool); err != nil {
					harness.Need(t, tool+": docs/testing.md names what to install")
				}
			}
			if d.image == nil {
				d.image = recipes.Toolbox
			}
			recipes.Need(t, "podman", d.image())
			tools := must.Get(harness.NodeModules("documents", "testdata/tools"))(t)
			file := d.fetch(t, tools)
			home, project := must.ShortDir(t), must.ShortDir(t)
			host := d.install(t, home, project, name, file)
			seen := &requests{}
			service := seen.record(d.stub(t, tools, file))
			server := stub.Start(t, stub.Script{Streams: true, Services: map[string]http.Handler{host: service}})
			d.run(t, server, home, project, name, host, tools)
			seen.judge(t)
		})
	}
}

// fetch returns the document's file.
func (d *document) fetch(t *testing.T, tools string) string {
	t.Helper()
	if d.sum == "" {
		return filepath.Join(tools, "node_modules", filepath.FromSlash(d.module), d.file)
	}
	cmd := exec.Command("go", "mod", "download", "-json", d.module)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GO111MODULE=on")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download %s: %v\n%s", d.module, err, out)
	}
	var got struct{ Dir, Sum string }
	must.Do(t, json.Unmarshal(out, &got))
	if got.Sum != d.sum {
		t.Fatalf("the sum of %s is %s, want %s", d.module, got.Sum, d.sum)
	}
	return filepath.Join(got.Dir, d.file)
}

// aileron runs the program to its end.
func aileron(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = harness.Env(home, passphrase)
	out, errs, code := harness.Finish(t, cmd, harness.Patience)
	if code != 0 {
		t.Fatalf("aileron %.200q ends with %d\n%.4000s%.4000s", args, code, out, errs)
	}
	return out
}

// install makes the connector of the calls, installs it, and writes the calls into the project. It returns the host.
func (d *document) install(t *testing.T, home, project, name, file string) (host string) {
	t.Helper()
	fqn, dir := "github://acme/"+name, filepath.Join(t.TempDir(), name)
	args := []string{"connector", "new", dir, "--name", fqn, "--from", file, "--approve-none"}
	if d.host != "" {
		args = append(args, "--host", d.host)
	}
	if d.kind != "" {
		args = append(args, "--credential", d.kind)
	}
	if d.query != "" {
		args = append(args, "--query", d.query)
	}
	for _, c := range d.calls {
		args = append(args, "--only", c.operation)
	}
	aileron(t, home, args...)
	aileron(t, home, "connector", "check", dir)
	of := harness.Connector{Dir: dir, FQN: fqn, Secret: secret, User: d.user}
	must.Do(t, harness.Bind(program, home, passphrase, of))
	var spec struct {
		Tools []struct {
			Name       string
			Operations []struct {
				Name, Method, Path string
				Hosts              []string
			}
		}
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, "aileron.connector.v1.json")))(t), &spec))
	must.Do(t, os.Mkdir(filepath.Join(project, "calls"), 0o755))
	for _, c := range d.calls {
		for _, op := range spec.Tools[0].Operations {
			if method, path, _ := strings.Cut(c.operation, " "); op.Method != method || !strings.HasSuffix(op.Path, path) {
				continue
			}
			host = op.Hosts[0]
			at := filepath.Join(project, "calls", op.Name)
			request := fmt.Sprintf(`{"connector_fqn":%q,"tool":%q,"operation":%q,"args":%s}`, fqn, spec.Tools[0].Name, op.Name,
				c.args)
			must.Do(t, os.WriteFile(at+".args", []byte(c.args), 0o644))
			must.Do(t, os.WriteFile(at+".call", []byte(request), 0o644))
		}
	}
	return host
}

// copyPackage copies a package of Node that is in from, and all that it needs, to the same places in to.
func copyPackage(t *testing.T, from, to, name string, copied map[string]bool) {
	t.Helper()
	if copied[name] {
		return
	}
	copied[name] = true
	dir := filepath.Join(from, filepath.FromSlash(name))
	target := filepath.Join(to, filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(target), 0o755))
	harness.Copy(t, dir, target)
	var dirs []string
	must.Do(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == "package.json" {
			dirs = append(dirs, path) // those of packages within it, too
		}
		return err
	}))
	for _, path := range dirs {
		var has struct{ Dependencies map[string]string }
		if json.Unmarshal(must.Get(os.ReadFile(path))(t), &has) != nil {
			continue
		}
		for needed := range has.Dependencies {
			if _, err := os.Stat(filepath.Join(from, filepath.FromSlash(needed))); err == nil {
				copyPackage(t, from, to, needed, copied)
			}
		}
	}
}

// stub starts Prism with the operations of the calls, and returns what passes requests on to it.
func (d *document) stub(t *testing.T, tools, file string) http.Handler {
	t.Helper()
	part := filepath.Join(t.TempDir(), "part.json")
	words := []string{"testdata/prune.mjs", filepath.Join(tools, "node_modules"), file, part}
	for _, c := range d.calls {
		words = append(words, c.operation)
	}
	if out, err := exec.Command("node", words...).CombinedOutput(); err != nil {
		t.Fatalf("prune: %v\n%s", err, out)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	must.Do(t, l.Close())
	var printed bytes.Buffer
	prism := exec.Command("node", filepath.Join(tools, "node_modules/@stoplight/prism-cli/dist/index.js"), "mock",
		"--errors", "-h", "127.0.0.1", "-p", port, part)
	prism.Stdout, prism.Stderr = &printed, &printed
	must.Do(t, prism.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = prism.Wait() }()
	t.Cleanup(func() {
		_ = prism.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%.4000s", printed.String())
		}
	})
	at := must.Get(url.Parse("http://127.0.0.1:" + port))(t)
	listens := false
	harness.Poll(harness.Patience, 100*time.Millisecond, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		conn, err := net.Dial("tcp", at.Host)
		if listens = err == nil; listens {
			_ = conn.Close()
		}
		return listens
	})
	if !listens {
		t.Fatal("Prism does not listen")
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Header.Set("Accept", "*/*") // what the responses would be is not judged
		if r.Out.ContentLength != 0 && r.Out.Header.Get("Content-Type") == "" {
			r.Out.Header.Set("Content-Type", "application/json") // kubectl sends none, and Kubernetes takes it for JSON
		}
	}, ModifyResponse: func(res *http.Response) error {
		if res.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(res.Body)
			res.Body = io.NopCloser(bytes.NewReader(body))
			t.Logf("%s %s: %d %s", res.Request.Method, res.Request.URL, res.StatusCode, body)
		}
		return nil
	}}
}

// run makes the calls from a sandbox, in all ways.
func (d *document) run(t *testing.T, server *stub.Server, home, project, name, host, tools string) {
	t.Helper()
	want := 2 * len(d.calls)
	args := []string{"sandbox", "run", "--sandbox=podman", "--image", d.image().Ref, "--dir", project,
		"--upstream-ca", server.Roots, "--resolve", host + ":443:" + server.Addr, "--", "sh", "calls.sh", name}
	harness.Copy(t, "testdata/calls.sh", filepath.Join(project, "calls.sh"))
	if d.client != "" {
		harness.Copy(t, filepath.Join("testdata", d.client), filepath.Join(project, d.client))
		if d.needs != "" {
			copyPackage(t, filepath.Join(tools, "node_modules"), filepath.Join(project, "node_modules"), d.needs,
				map[string]bool{})
		}
		args, want = append(args, d.client), want+cmp.Or(d.makes, len(d.calls))
	}
	harness.ShareImages(t, home)
	out := aileron(t, home, args...)
	if strings.Contains(out, "failed ") || strings.Count("\n"+out, "\nok ") != want {
		t.Errorf("%d of %d calls are valid:\n%s", strings.Count("\n"+out, "\nok "), want, out)
	}
	if strings.Contains(out, secret) {
		t.Error("the secret is in the output")
	}
}

// requests are what a service was sent.
type requests struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // by method and path
}

// record returns next, whose requests are recorded.
func (q *requests) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		text := string(body)
		if form, err := url.ParseQuery(text); err == nil && strings.Contains(r.Header.Get("Content-Type"), "form") {
			text = form.Encode()
		}
		var value any
		if json.Unmarshal(body, &value) == nil {
			sorted, _ := json.Marshal(value)
			text = string(sorted)
		}
		key, what := r.Method+" "+r.URL.Path, r.URL.Query().Encode()+" "+text
		q.mu.Lock()
		if q.seen == nil {
			q.seen = map[string]map[string]bool{}
		}
		if q.seen[key] == nil {
			q.seen[key] = map[string]bool{}
		}
		q.seen[key][what] = true
		q.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// judge checks that all ways to make a call make the same request.
func (q *requests) judge(t *testing.T) {
	t.Helper()
	for key, all := range q.seen {
		if len(all) != 1 {
			t.Errorf("%s was sent in %d forms: %q", key, len(all), slices.Sorted(maps.Keys(all)))
		}
	}
}
