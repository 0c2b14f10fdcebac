// Package shims runs the commands of connectors in real sandboxes: Debian with GNU
// wget, and a root file system of BusyBox alone, which may be read-only.
package shims

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var binary, bound string // the built aileron, and a home in which the connector is bound

const (
	secret     = "ghp-shims/TOKEN+0123456789abcdefXYZ"
	passphrase = "correct horse battery"
	fqn        = "github://alrubinger/aileron-connector-github"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(apart); dir != "" {
		binary, bound = filepath.Join(dir, "aileron"), filepath.Join(dir, "h")
		os.Exit(m.Run())
	}
	os.Exit(harness.Run(m, "shims", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		binary, bound = filepath.Join(dir, "aileron"), filepath.Join(dir, "h")
		if err := os.Chmod(dir, 0o755); err != nil { // other users run it
			panic(err)
		}
		err := harness.Bind(binary, bound, passphrase, harness.Connector{
			Dir: "../../examples/connectors/github", FQN: fqn, Secret: secret})
		if err != nil {
			panic(err)
		}
	}))
}

// service is GitHub's API, as far as the tests ask for it. What it is sent in a
// body, it sends back.
func service() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{"login":"octo-stand-in"}`)
	})
	mux.HandleFunc("GET /users/none", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"Not Found"}`)
	})
	mux.HandleFunc("GET /later/{name}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "later "+r.PathValue("name")+"\n")
	})
	mux.HandleFunc("GET /users/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("POST /repos/a/b/issues", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	return mux
}

type person struct {
	t                     testing.TB
	engine, home, project string
	origin                *stub.Server
	user                  int
	as                    []string // the words before a command of the user's, if it is another one than this process's
}

func newPerson(t testing.TB, engine string) *person {
	t.Helper()
	harness.PodmanIsEnough(t, engine)
	harness.Turn(t)
	harness.NeedEngine(t, engine)
	return personOf(t, engine)
}

// personOf is a person of an engine that is yet to start.
func personOf(t testing.TB, engine string) *person {
	t.Helper()
	dir := must.ShortDir(t)
	p := &person{t: t, engine: engine, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p"),
		origin: stub.Start(t, stub.Script{Token: secret, Services: map[string]http.Handler{stub.GitHub: service()}})}
	must.Do(t, os.Mkdir(p.project, 0o755))
	harness.Copy(t, bound, p.home)
	harness.ShareImages(t, p.home)
	// No one approves here.
	must.Do(t, os.WriteFile(filepath.Join(p.home, "config.toml"), []byte("[approval]\nhold = \"1s\"\n"), 0o600))
	return p
}

type result struct {
	out, err string
	code     int
}

func (p *person) aileron(args ...string) result {
	p.t.Helper()
	words := append(append(slices.Clone(p.as), binary), args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = harness.Env(p.home, passphrase)
	out, errs, code := harness.Finish(p.t, cmd, harness.Patience)
	return result{out, harness.WithoutNotices(errs), code}
}

// box runs a script in a sandbox of an image.
func (p *person) box(image, script string, flags ...string) result {
	p.t.Helper()
	args := append([]string{"sandbox", "run", "--sandbox=" + p.engine, "--image", image, "--dir", p.project,
		"--upstream-ca", p.origin.Roots, "--resolve", stub.GitHub + ":443:" + p.origin.Addr}, flags...)
	return p.aileron(append(args, "--", "sh", "-c", script)...)
}

// contents are what an image has besides BusyBox.
type contents struct {
	files    map[string]string
	programs []string // of this machine, with their libraries, instead of BusyBox's
	without  []string // programs of BusyBox's
	user     int
}

// busybox imports an image that has BusyBox and those contents, and nothing else.
func busybox(t testing.TB, engine string, c contents) string {
	t.Helper()
	program := pathOf(t, "busybox")
	list := must.Get(exec.Command(program, "--list").Output())(t)
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	add := func(h *tar.Header, data string) {
		h.Size = int64(len(data))
		must.Do(t, w.WriteHeader(h))
		_, _ = io.WriteString(w, data)
	}
	add(&tar.Header{Name: "bin/busybox", Mode: 0o755}, contentsOf(t, program))
	others := append(slices.Concat(c.programs, c.without), "busybox")
	if slices.Contains(c.programs, "dash") {
		others = append(others, "sh")
		add(&tar.Header{Name: "bin/sh", Typeflag: tar.TypeSymlink, Linkname: pathOf(t, "dash")}, "")
	}
	for _, applet := range strings.Fields(string(list)) {
		if !slices.Contains(others, applet) {
			add(&tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, "")
		}
	}
	for _, path := range pathsOf(t, c.programs) {
		add(&tar.Header{Name: path, Mode: 0o755}, contentsOf(t, path))
	}
	add(&tar.Header{Name: "etc/passwd", Mode: 0o644}, "root:x:0:0:root:/root:/bin/sh\n")
	add(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, "")
	for name, text := range c.files {
		add(&tar.Header{Name: name, Mode: 0o755}, text)
	}
	must.Do(t, w.Close())
	tag := strings.Trim(notOfATag.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	ref := fmt.Sprintf("localhost/aileron-shims/busybox:%d-%s", os.Getpid(), tag)
	tool := func(stdin io.Reader, args ...string) ([]byte, error) {
		cmd := exec.Command(engine, args...)
		cmd.Env, cmd.Stdin = harness.EngineEnv(t), stdin
		return cmd.CombinedOutput()
	}
	t.Cleanup(func() {
		if out, err := tool(nil, "rmi", "-f", ref); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	args := []string{"import"}
	if c.user != 0 {
		args = append(args, "--change", fmt.Sprintf("USER %d:%d", c.user, c.user))
	}
	if out, err := tool(&root, append(args, "-", ref)...); err != nil {
		t.Fatalf("import an image: %v\n%s", err, out)
	}
	return ref
}

var notOfATag = regexp.MustCompile(`[^a-z0-9]+`)

func contentsOf(t testing.TB, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return string(data)
}

// pathOf returns the path of a program of this machine.
func pathOf(t testing.TB, program string) string {
	t.Helper()
	if !harness.Has(t, program) {
		t.Skipf("there is no %s: scripts/prepare --tests installs it", program)
	}
	path, _ := exec.LookPath(program)
	return path
}

// pathsOf returns the paths of this machine's programs and of the libraries that they load.
func pathsOf(t testing.TB, programs []string) []string {
	t.Helper()
	var paths []string
	for _, program := range programs {
		path := pathOf(t, program)
		out, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", path, err)
		}
		paths = append(paths, path)
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				paths = append(paths, word)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// onEach runs a test on each engine, with Debian and with BusyBox.
func onEach(t *testing.T, test func(t *testing.T, p *person, image string, flags ...string)) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine+"/debian", func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, engine)
			recipes.Need(t, engine, recipes.Base())
			test(t, p, recipes.Base().Ref)
		})
		for name, flags := range map[string][]string{"busybox": nil, "read-only": {"--read-only"}} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				test(t, p, busybox(t, engine, contents{}), flags...)
			})
		}
	}
}

// calls prints what each call prints, between marks.
const calls = `
call() { printf '<%s>' "$1"; shift; "$@" 2>/tmp/err; printf '<exit %s><' "$?"; cat /tmp/err; echo '>'; }
call help github --help
call inputs github issues.get --help
call get github user.get
call json github user.get --json
call missing github users.get --args '{"username":"none"}'
call invalid github users.get --args '{"username":7}'
call dots github users.get --args '{"username":"a/../b"}'
call doubled github users.get --args '{},"tool":"other","args":{"username":"none"}'
call closed github users.get --args '{}},"x":{'
call unknown github users.drop
call create github issues.create --args '{"owner":"a","repo":"b","title":` +
	`"it'\''s \"$(touch /tmp/ran)\" ` + "`touch /tmp/ran`" + `\n"}'
printf '{"owner":"a","repo":"b","title":"%s"}' "of standard input" >/tmp/args
call stdin github issues.create --args - </tmp/args
{ printf '{"owner":"a","repo":"b","title":"'; dd if=/dev/zero bs=1024 count=10240 2>/dev/null | tr '\0' x
printf '"}'; } >/tmp/args
call large github issues.create --args - </tmp/args
call path env PATH="/tmp/evil:$PATH" github user.get
ls /tmp/ran; ls -A /tmp | grep aileron
find /opt/aileron/manifests -type f; touch /opt/aileron/manifests/mine && echo writable
echo 'echo stolen' >/opt/aileron/manifests/.commands/github && echo writable
ls /opt/aileron/manifests
echo "$AILERON_SHIMS_DIR"`

// evil makes a wget of the project's.
const evil = "mkdir -p /tmp/evil; printf '#!/bin/sh\\necho stolen\\n' >/tmp/evil/wget; chmod 755 /tmp/evil/wget\n"

func TestCommandsInASandbox(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *person, image string, flags ...string) {
		r := p.box(image, evil+calls, flags...)
		for _, want := range []string{
			"<help>Usage: github OPERATION", "issues.get  ",
			"<inputs>Usage: github issues.get", "  issue_number  string, required",
			`<get>{"login":"octo-stand-in"}<exit 0><>`,
			`"upstream_status":200`, `"operation":"user.get"`,
			`<missing>{"message":"Not Found"}<exit 1><github users.get: the upstream responded with status 404` +
				"\naudit id: 01",
			"<invalid><exit 2><github users.get: aileron: args.username: it is not a string.",
			"<dots><exit 2><github users.get: aileron: args.username: it has a slash",
			"<doubled><exit 2><github users.get: ", "<closed><exit 2><github users.get: ",
			`<unknown><exit 2><github: "users.drop" is not an operation of github` + "\nhint: github --help lists them",
			`"title":"it's \"$(touch /tmp/ran)\" ` + "`touch /tmp/ran`", `"title":"of standard input"`,
			`<path>{"login":"octo-stand-in"}<exit 0><>`,
			"/opt/aileron/manifests/connectors/github/alrubinger/aileron-connector-github@",
			"\nactions\nconnectors\n/usr/local/bin\n",
		} {
			if !strings.Contains(r.out, want) {
				t.Errorf("the output has no %q", want)
			}
		}
		for _, never := range []string{"<large><exit 0>", "writable", "stolen", secret[:16]} {
			if strings.Contains(r.out, never) {
				t.Errorf("the output has %q", never)
			}
		}
		if _, large, _ := strings.Cut(r.out, "<large>"); !strings.HasPrefix(large, "<exit ") ||
			!strings.Contains(large[:min(len(large), 300)], "github issues.create: ") {
			t.Errorf("10 MiB are not refused clearly: %.300s", large)
		}
		if strings.Contains(r.out, "\n/tmp/ran") || strings.Contains(r.out, ".aileron-") {
			t.Error("a value was run, or a temporary file is left")
		}
		for _, s := range p.origin.Seen() {
			if s.Path == "/users/b" || s.Path == "/a/b" {
				t.Errorf("the service saw %s", s.Path)
			}
		}
		if t.Failed() {
			t.Logf("exit %d\n%.20000s\n%s", r.code, r.out, r.err)
		}
		var rows []struct{ Source, Operation, Decision string }
		for _, line := range strings.Split(strings.TrimSpace(p.aileron("audit", "list", "--json", "--limit", "0",
			"--decision", "proxied").out), "\n") {
			row := rows
			_ = json.Unmarshal([]byte("["+line+"]"), &row)
			rows = append(rows, row...)
		}
		if len(rows) < 5 || rows[0].Source != "generated_connector_shim" {
			t.Errorf("the audit log has %+v", rows)
		}
	})
}

// A process of another user of the host sees the arguments of all processes.
func TestTheTokenIsInNoProcessList(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *person, image string, flags ...string) {
		r := p.box(image, `
github users.get --args '{"username":"slow"}' & job=$!
until cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -q 'application/vnd.aileron.shim.v1'; do
	kill -0 $job || exit 3; sleep 0.1; done
for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done >/tmp/list
grep -c 'vnd.aileron.shim' /tmp/list
grep -F -e "$AILERON_TOKEN" /tmp/list && echo seen
kill $job; exit 0`, flags...)
		if r.code != 0 || strings.Contains(r.out, "seen") || !strings.ContainsAny(r.out, "123456789") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	})
}

// A program of the image keeps its name, wherever it is on the PATH.
func TestAProgramOfTheImageKeepsItsName(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"usr/local/bin/github", "usr/bin/github"} {
		t.Run(filepath.Dir(place), func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, "podman")
			image := busybox(t, "podman", contents{
				files: map[string]string{place: "#!/bin/sh\necho the program of the image\n"}})
			r := p.box(image, "github --help; aileron-github user.get; grep -c '^aileron-github  ' /etc/aileron/tools.txt")
			if r.code != 0 || r.out != "the program of the image\n{\"login\":\"octo-stand-in\"}1\n" ||
				!strings.Contains(r.err, "the image has a program /"+place+": the connector's command is aileron-github") {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}

func TestConflictsRefuseTheLaunch(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "podman")
	image := busybox(t, "podman", contents{})
	args := []string{"sandbox", "run", "--sandbox=podman", "--image", image, "--dir", p.project, "--"}
	r := p.aileron(append(args, "github")...)
	for _, want := range []string{fqn, "this session: github", "hint: aileron connector remove " + fqn} {
		if r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("a command of the agent's name: exit %d, no %q\n%s", r.code, want, r.err)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("manifest.toml", "[connector]\nname = \"github://rival/github\"\nversion = \"1.0.0\"\n"+
		"[capabilities.network]\nhosts = [\"api.rival.example:443\"]\n[provides]\nintents = [\"read\"]\n")
	write("aileron.connector.v1.json", `{"schema_version":"aileron.connector.v1","connector":{
		"fqn":"github://rival/github","version":"1.0.0"},
		"tools":[{"name":"GitHub","operations":[{"name":"get","method":"GET","path":"/x",
		"hosts":["api.rival.example"]}]}]}`)
	if r := p.aileron("connector", "install", dir, "--yes"); r.code != 0 {
		t.Fatalf("install: %s", r.err)
	}
	r = p.aileron(append(args, "true")...)
	for _, want := range []string{fqn, "github://rival/github 1.0.0", "hint: remove one of them: aileron connector "} {
		if r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("two connectors: exit %d, no %q\n%s", r.code, want, r.err)
		}
	}
}

// An action is a command too, beside those of the connectors.
func TestAnActionIsACommand(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "podman")
	var installed []struct{ FQN, Version, Hash string }
	out := p.aileron("connector", "list", "--json").out
	if err := json.Unmarshal([]byte(out), &installed); err != nil || len(installed) != 1 {
		t.Fatalf("connector list: %v\n%s", err, out)
	}
	file := fmt.Sprintf(`+++
[action]
name = "find-account"
version = "1.0.0"
description = "Find an account"

[[inputs]]
name = "account"
type = "string"
required = true
description = "Its name"

[[requires.connectors]]
name = %q
version = %q
hash = %q
capabilities = ["users.get"]

[[execute]]
tool = "github"
operation = "users.get"
args = { username = "${args.account}" }
+++
`, installed[0].FQN, installed[0].Version, installed[0].Hash)
	dir := filepath.Join(p.home, "actions")
	must.Do(t, os.MkdirAll(dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "find-account.md"), []byte(file), 0o600))
	r := p.box(busybox(t, "podman", contents{}), `grep '^find-account  ' $AILERON_TOOLS_FILE; find-account --help | head -8
find-account --args '{"account":"none"}' 2>&1; echo "<exit $?>"
find-account --args '{"username":"none"}' 2>&1; echo "<exit $?>"
find-account --args '{},"action":"other","args":{"account":"none"}' 2>&1; echo "<exit $?>"
find-account --args '{"account":"none"}' --json; find-account now; echo "<exit $?>"
cat /opt/aileron/manifests/actions/find-account.md | tail -4`)
	for _, want := range []string{
		"find-account  action -- Find an account\n", "  account  string, required: Its name\n",
		`{"message":"Not Found"}find-account: the upstream responded with status 404`, "<exit 1>", "<exit 2>",
		`"action":"find-account"`, "username = \"${args.account}\" }\n+++\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if n := strings.Count(r.out, "<exit 2>"); t.Failed() || n != 3 {
		t.Errorf("%d wrong calls\n%s%s", n, r.out, r.err)
	}
}

// What needs an approval is not sent: the command and the action end with 75, and no
// other exit code, on each engine, and so does aileron action run.
func TestAPendingApprovalEndsWith75(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, engine)
			dir := t.TempDir()
			write := func(path, text string) {
				t.Helper()
				must.Do(t, os.WriteFile(path, []byte(text), 0o600))
			}
			write(filepath.Join(dir, "manifest.toml"), "[connector]\nname = \"github://acme/orders\"\nversion = \"1.0.0\"\n"+
				"[capabilities.network]\nhosts = [\"api.orders.example:443\"]\n")
			write(filepath.Join(dir, "aileron.connector.v1.json"), `{"schema_version":"aileron.connector.v1","connector":{
				"fqn":"github://acme/orders","version":"1.0.0"},
				"tools":[{"name":"orders","operations":[{"name":"place","method":"POST","path":"/v1/orders",
				"hosts":["api.orders.example"],"approval":"required"}]}]}`)
			var installed struct{ Hash string }
			r := p.aileron("connector", "install", dir, "--yes", "--json")
			if err := json.Unmarshal([]byte(r.out), &installed); err != nil {
				t.Fatalf("install: %v\n%s%s", err, r.out, r.err)
			}
			file := filepath.Join(dir, "order.md")
			write(file, fmt.Sprintf("+++\n[action]\nname = \"place-order\"\nversion = \"1.0.0\"\ndescription = \"Order\"\n"+
				"[[requires.connectors]]\nname = \"github://acme/orders\"\nversion = \"1.0.0\"\nhash = %q\n"+
				"capabilities = [\"place\"]\n[[execute]]\ntool = \"orders\"\noperation = \"place\"\n+++\n", installed.Hash))
			if r := p.aileron("action", "add", file, "--yes"); r.code != 0 {
				t.Fatalf("action add: %s", r.err)
			}
			r = p.box(busybox(t, engine, contents{}), `orders place 2>&1; echo "<exit $?>"; place-order 2>&1; echo "<exit $?>"
orders place --json 2>/dev/null; echo "<exit $?>"`, "--resolve", "api.orders.example:443:"+p.origin.Addr)
			if r.code != 0 || strings.Count(r.out, "<exit 75>") != 3 || strings.Count(r.out, "<exit ") != 3 ||
				!strings.Contains(r.out, "orders place: ") || !strings.Contains(r.out, "place-order: ") ||
				!strings.Contains(r.out, `"class":"approval_required"`) {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			run := p.aileron("action", "run", "place-order")
			if run.code != 75 || run.out != "" || !strings.Contains(run.err, "approval") {
				t.Errorf("aileron action run: exit %d\n%s%s", run.code, run.out, run.err)
			}
			for _, s := range p.origin.Seen() {
				t.Errorf("the service got %s %s", s.Method, s.Path)
			}
		})
	}
}
