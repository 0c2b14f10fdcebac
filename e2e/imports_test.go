package e2e

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ALRubinger/aileron"

// arrows is who may import whom; the first matching line counts. A package
// that has no line imports nothing of ours.
var arrows = []struct{ from, to, why string }{
	{"cmd/aileron", "*", "the command joins everything"},
	{"e2e", "*", "tests only"},
	{"proxy", "spec vault ca audit proxy/ internal/", "the plane stands on the leaves"},
	{"audit", "internal/", "leaves of every package"},
	{"shims", "spec", "shims render what specs declare"},
	{"spec/store", "spec internal/", "the store keeps connectors"},
	{"vault", "internal/", "leaves of every package"},
	{"sandbox", "sandbox/ internal/", "a box knows boxes, not proxies"},
}

// owners is which files may import a third-party module, and what it is for.
var owners = []struct{ prefix, files, why string }{
	{"github.com/elazarl/goproxy", "proxy/front.go e2e/bench/*.go", "the front dispatches; it never dials or verifies for us"},
	{"github.com/google/martian/v3", "proxy/steps.go proxy/response.go audit/har.go e2e/bench/*.go", "the words: modifiers in an ordered group"},
	{"github.com/tidwall/gjson", "proxy/fields.go", "declared audit fields; never a decision"},
	{"modernc.org/sqlite", "audit/*.go", "the audit log"},
	{"github.com/oklog/ulid/v2", "audit/row.go audit/unknown.go", "ids of rows and sessions"},
	{"github.com/docker/docker", "sandbox/*.go", "both engines"},
	{"github.com/containerd/errdefs", "sandbox/*.go", "kinds of the engine's errors"},
	{"github.com/docker/go-units", "sandbox/*.go", "ulimits of the engine's API"},
	{"github.com/docker/go-connections", "sandbox/*.go", "types of the engine's API"},
	{"github.com/google/nftables", "sandbox/gateway/*.go", "the gateway's rules without tools in the image"},
	{"github.com/vishvananda/netlink", "sandbox/gateway/*.go e2e/harness/*.go", "the gateway's routes, and the tests' namespaces, without tools in the image"},
	{"github.com/miekg/dns", "sandbox/gateway/*.go", "the gateway's DNS stub"},
	{"filippo.io/age", "vault/*.go", "the vault at rest"},
	{"github.com/zalando/go-keyring", "vault/keyring.go", "the OS keyring"},
	{"github.com/BurntSushi/toml", "spec/*.go cmd/aileron/config.go", "manifests and the configuration"},
	{"github.com/spf13/cobra", "cmd/aileron/*.go", "the command tree"},
	{"github.com/spf13/pflag", "cmd/aileron/*.go", "the command tree's flags"},
	{"golang.org/x/term", "cmd/aileron/*.go sandbox/terminal.go", "prompts and raw terminals"},
	{"golang.org/x/mod", "spec/*.go", "strict SemVer"},
	{"golang.org/x/net", "proxy/wire/h2/*.go proxy/broken.go sandbox/gateway/*.go e2e/bench/*.go e2e/harness/*.go e2e/hostile/*.go", "HTTP/2 frames and errors, DNS messages and packet filters"},
	{"golang.org/x/time", "proxy/plane.go", "the token bucket of requests in a second"},
	{"golang.org/x/sync", "*", "small and standard in all but name"},
	{"golang.org/x/sys", "*", "small and standard in all but name"},
	{"software.sslmate.com/src/go-pkcs12", "ca/java.go e2e/recipes/java.go", "trust stores of Java, theirs and ours"},
}

type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
}

func TestEveryImportIsAllowed(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if strings.Contains(pkg, "testdata") {
			continue
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module+"/"); ok {
				checkArrow(t, pkg, own)
			}
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				imp, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") && !strings.HasPrefix(imp, module) {
					checkOwner(t, path.Join(pkg, name), imp)
				}
			}
		}
	}
}

func checkArrow(t *testing.T, from, to string) {
	t.Helper()
	for _, a := range arrows {
		if from != a.from && !strings.HasPrefix(from, a.from+"/") {
			continue
		}
		for allowed := range strings.FieldsSeq(a.to) {
			if allowed == "*" || allowed == to || strings.HasSuffix(allowed, "/") && strings.HasPrefix(to, allowed) {
				return
			}
		}
		t.Errorf("%s imports %s; it may import %s: %s", from, to, a.to, a.why)
		return
	}
	t.Errorf("%s imports %s; it is a leaf and imports nothing of ours", from, to)
}

func checkOwner(t *testing.T, file, imp string) {
	t.Helper()
	for _, o := range owners {
		if imp != o.prefix && !strings.HasPrefix(imp, o.prefix+"/") {
			continue
		}
		if !slices.ContainsFunc(strings.Fields(o.files), func(pattern string) bool {
			ok, _ := path.Match(pattern, file)
			return ok || pattern == "*"
		}) {
			t.Errorf("%s imports %s; only %s may: %s", file, imp, o.files, o.why)
		}
		return
	}
	t.Errorf("%s imports %s, which no line of the owners table names; a new dependency needs a reason", file, imp)
}

func TestTheTableOfArrowsBites(t *testing.T) {
	for _, c := range []struct{ from, to string }{{"spec", "vault"}, {"sandbox", "proxy"}, {"proxy", "sandbox"}, {"audit", "spec"}} {
		probe := &testing.T{}
		checkArrow(probe, c.from, c.to)
		if !probe.Failed() {
			t.Errorf("%s may import %s", c.from, c.to)
		}
	}
}
