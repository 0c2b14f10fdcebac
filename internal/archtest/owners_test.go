package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// owner is a third-party module with the files that may import it: space-separated patterns of [path.Match], "*" for
// any file. Patterns that end in _test.go make it a module for these tests alone. Other tests may import any module
// that a file of the program owns.
type owner struct{ module, files, why string }

// owners is every module that the program or its tests import. A row on its own line, sorted.
var owners = []owner{
	{"aead.dev/minisign", "spec/signature/*.go", "signatures that minisign verifies, and its encrypted keys"},
	{"filippo.io/age", "vault/*.go", "the vault at rest"},
	{"github.com/BurntSushi/toml", "spec/manifest*.go spec/oauth2.go internal/config/*.go",
		"manifests and the configuration"},
	{"github.com/BurntSushi/toml", "internal/grants/document.go", "grants.toml"},
	{"github.com/BurntSushi/toml", "spec/action/parse.go", "the frontmatter of an action"},
	{"github.com/BurntSushi/toml", "spec/signature/*.go", "the files of publishers' keys"},
	{"github.com/chromedp/cdproto", "e2e/page/*_test.go", "what the browser of a test can be asked"},
	{"github.com/chromedp/chromedp", "e2e/page/*_test.go e2e/oauth/*_test.go", "drives a browser in tests"},
	{"github.com/coder/websocket", "e2e/protocol/*_test.go", "a WebSocket client and server of other people"},
	{"github.com/containerd/errdefs", "sandbox/engine/*.go", "kinds of the engine's errors"},
	{"github.com/creack/pty", "cmd/aileron/*_test.go sandbox/*_test.go", "terminals for tests"},
	{"github.com/creack/pty", "internal/detached/*_test.go", "terminals for tests"},
	{"github.com/creack/pty", "e2e/faults/*_test.go e2e/harness/*.go", "terminals for tests"},
	{"github.com/creack/pty", "e2e/bench/screens.go", "the terminal of an agent whose first screen is waited for"},
	{"github.com/docker/docker", "sandbox/engine/*.go", "the API of both engines"},
	{"github.com/docker/go-units", "sandbox/engine/*.go", "ulimits of the engine's API"},
	{"github.com/elastic/go-seccomp-bpf", "sandbox/native/filter.go", "the numbers of system calls, by architecture"},
	{"github.com/elazarl/goproxy", "proxy/front/handler.go e2e/bench/*.go", "it never dials or verifies for us"},
	{"github.com/google/martian/v3", "proxy/modify/*.go e2e/bench/*.go", "header modifiers"},
	{"github.com/google/martian/v3", "proxy/capture/*.go", "as in audit/export/harentry.go"},
	{"github.com/google/martian/v3", "audit/export/harentry.go", "the types of HAR 1.2; its Logger needs its own proxy"},
	{"github.com/google/nftables", "sandbox/gateway/*.go", "the gateway's rules without tools in the image"},
	{"github.com/google/nftables", "e2e/kube/*_test.go", "stands in for a NetworkPolicy"},
	{"github.com/jackc/pgx/v5", "internal/postgres/*.go", "the protocol of PostgreSQL, its URLs and password files"},
	{"github.com/mmcloughlin/avo", "proxy/scrub/internal/asm/*.go", "generates assembly, in a module of its own"},
	{"github.com/modelcontextprotocol/go-sdk", "internal/mcpserver/*.go", "the protocol of MCP, and its clients in tests"},
	{"github.com/nats-io/nats-server/v2", "e2e/natsserver/*.go", "a NATS server, in a module of its own"},
	{"github.com/nats-io/nats.go", "internal/jetstream/*.go", "the protocol of NATS and JetStream"},
	{"github.com/oklog/ulid/v2", "internal/otlp/batch.go", "a request's id is that of its trace"},
	{"github.com/oklog/ulid/v2", "audit/internal/chain/*.go audit/internal/table/find.go", "ids of rows and sessions"},
	{"github.com/ory/fosite", "e2e/oauthserver/*.go", "an authorization server of other people, in a module of its own"},
	{"github.com/prometheus/prometheus", "e2e/promparse/*.go", "its own parser of metrics, in a module of its own"},
	{"github.com/rogpeppe/go-internal", "cmd/aileron/*_test.go proxy/story_test.go", "stories in txtar"},
	{"github.com/santhosh-tekuri/jsonschema/v6", "e2e/rowschema/*.go", "holds rows to their schema"},
	{"github.com/santhosh-tekuri/jsonschema/v6", "internal/auditschema/*_test.go", "why a row is refused"},
	{"github.com/santhosh-tekuri/jsonschema/v6", "internal/connectorschema/*_test.go", "as in internal/auditschema"},
	{"github.com/smallstep/truststore", "ca/truststore_linux.go", "where distributions keep their own roots"},
	{"github.com/spf13/cobra", "cmd/aileron/*.go cmd/aileron/internal/*/*.go", "the command tree"},
	{"github.com/tailscale/hujson", "sandbox/devcontainer/parse.go", "JSON with comments, and where in it a value is"},
	{"github.com/tailscale/hujson", "sandbox/agents/registration.go", "the comments of opencode's configuration"},
	{"github.com/tidwall/gjson", "proxy/fields.go proxy/preview/preview.go",
		"declared fields of a response; never a decision"},
	{"github.com/vishvananda/netlink", "sandbox/gateway/*.go e2e/harness/*.go", "routes and namespaces without tools"},
	{"github.com/zalando/go-keyring", "vault/keyring.go", "the keyring of the operating system"},
	{"github.com/godbus/dbus/v5", "vault/keyring.go", "the errors of the bus on which go-keyring finds it"},
	{"golang.org/x/crypto", "e2e/oauthserver/*.go", "the hashes of secrets that fosite compares"},
	{"golang.org/x/crypto", "spec/signature/*.go", "BLAKE2b, the hash of minisign's prehashed form"},
	{"github.com/vektah/gqlparser", "proxy/judge/document.go", "documents of GraphQL, behind bounds of our own"},
	{"github.com/vektah/gqlparser", "spec/graphql/sdl.go", "schemas of GraphQL, with a bound on their tokens"},
	{"github.com/yuin/goldmark", "spec/openapi/prose.go", "the Markdown of descriptions, which become plain text"},
	{"go.yaml.in/yaml/v3", "spec/openapi/tree.go", "YAML in nodes, so that no alias is expanded"},
	{"golang.org/x/mod", "audit/internal/chain/sign*.go", "signed notes, which other tools read"},
	{"golang.org/x/mod", "e2e/services/*.go", "a checksum database of Go modules for tests"},
	{"golang.org/x/mod", "spec/*.go", "strict SemVer"},
	{"golang.org/x/net", "internal/otlp/environment.go", "which names and values of header fields are valid"},
	{"golang.org/x/net", "internal/auditpage/page.go", "a bound on the connections of a listener"},
	{"golang.org/x/net", "spec/openapi/prose.go", "the HTML of descriptions, of which the text is left"},
	{"golang.org/x/net", "proxy/upstream/classify.go proxy/wire/h2/*.go", "HTTP/2 frames and errors"},
	{"golang.org/x/net", "proxy/upstream/dialproxy.go", "SOCKS5, and the grammar of NO_PROXY"},
	{"golang.org/x/net", "sandbox/gateway/*.go", "DNS messages"},
	{"golang.org/x/net", "sandbox/native/*.go", "assembles the seccomp filter"},
	{"golang.org/x/net", "e2e/bench/*.go e2e/harness/*.go", "HTTP/2 and packet filters for tests"},
	{"golang.org/x/sync", "*", "standard in all but name"},
	{"golang.org/x/sys", "*", "standard in all but name"},
	{"golang.org/x/term", "internal/console/*.go internal/launch/launch.go",
		"prompts, and whether a stream is a terminal"},
	{"golang.org/x/term", "internal/terminal/terminal.go internal/detached/attach.go", "raw terminals"},
	{"golang.org/x/text", "internal/console/columns.go", "characters that take two columns of a terminal"},
	{"golang.org/x/time", "proxy/plane.go", "the token bucket of requests in a second"},
	{"golang.org/x/oauth2", "vault/oauth/*.go", "PKCE, the exchange of codes and refresh tokens, device codes"},
	{"golang.org/x/time", "proxy/plane.go proxy/front/front.go", "the token bucket of requests in a second"},
	{"go.opentelemetry.io/otel", "internal/otlp/*.go", "the SDK that makes spans; its HTTP exporters link gRPC"},
	{"go.opentelemetry.io/proto/otlp", "internal/otlp/*.go", "the official protobufs"},
	{"google.golang.org/grpc", "e2e/protocol/*_test.go", "a gRPC client and server of other people"},
	{"google.golang.org/protobuf", "internal/otlp/*.go", "encodes the protobufs of OpenTelemetry"},
	{"k8s.io/api", "internal/kube/*_test.go e2e/kube/*_test.go", "the API's own types read what is printed"},
	{"k8s.io/apimachinery", "internal/kube/*_test.go e2e/kube/*_test.go", "as k8s.io/api, and which names are valid"},
	{"k8s.io/pod-security-admission", "internal/kube/*_test.go", "which Pods are restricted, as the API server decides"},
	{"modernc.org/libc", "audit/internal/table/*.go", "memory that SQLite is given"},
	{"modernc.org/sqlite", "audit/internal/table/*.go", "the audit log"},
	{"sigs.k8s.io/yaml", "internal/kube/*_test.go e2e/kube/*_test.go", "YAML as the API server reads it, strictly"},
	{"software.sslmate.com/src/go-pkcs12", "ca/java.go e2e/recipes/java.go", "Java's trust stores, theirs and ours"},
}

// owns reports whether the row is about the package imported.
func (o owner) owns(imported string) bool {
	return imported == o.module || strings.HasPrefix(imported, o.module+"/")
}

// allows reports whether the pattern lets the file import the module.
func allows(pattern string, f file) bool {
	if pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, f.path)
	return err == nil && ok
}

// forTests reports whether only tests may import the module.
func (o owner) forTests() bool {
	return !slices.ContainsFunc(strings.Fields(o.files), func(p string) bool { return !strings.HasSuffix(p, "_test.go") })
}

func TestEveryModuleHasItsOwner(t *testing.T) {
	type use struct{ module, pattern string }
	used := map[use]bool{}
	for _, f := range goSources(t) {
		for _, imported := range f.imports(t) {
			host, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(host, ".") || strings.HasPrefix(imported, module+"/") {
				continue // the standard library's, or ours
			}
			known, allowed := false, false
			for _, o := range owners {
				if !o.owns(imported) {
					continue
				}
				known = true
				allowed = allowed || f.isTest() && !o.forTests()
				for pattern := range strings.FieldsSeq(o.files) {
					if !allows(pattern, f) {
						continue
					}
					allowed = true
					if !f.isTest() || strings.HasSuffix(pattern, "_test.go") {
						used[use{o.module, pattern}] = true
					}
				}
			}
			switch {
			case !known:
				t.Errorf("%s imports %s, which no row of owners names: a new module needs a reason", f.path, imported)
			case !allowed:
				t.Errorf("%s imports %s; it is none of the files that own the module", f.path, imported)
			}
		}
	}
	for _, o := range owners {
		for pattern := range strings.FieldsSeq(o.files) {
			if !used[use{o.module, pattern}] {
				t.Errorf("owners: no file that matches %s imports %s any more: remove the pattern", pattern, o.module)
			}
		}
		if o.why == "" {
			t.Errorf("owners: the row of %s has no reason", o.module)
		}
	}
}
