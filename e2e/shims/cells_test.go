package shims

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// cell is a kind of box, whose image has a user and one client for the commands.
type cell struct {
	engine   string
	rootless bool
	image    contents
	flags    []string
	shown    bool // the token is in an argument of the client's
}

// ordinary is the ID of a user that neither this machine nor an image names. A box has the image's user where the
// project is that user's.
const ordinary = 4321

// Debian's BusyBox runs its own wget where a file of that name is another program's, unless the shell is another one.
var (
	curl    = contents{programs: []string{"dash", "curl"}, without: []string{"wget"}}
	gnuWget = contents{programs: []string{"dash", "wget"}, files: map[string]string{
		"etc/wgetrc": "http_proxy = http://127.0.0.1:9/\nuse_proxy = on\n"}}
	both = contents{programs: []string{"dash", "curl"}} // BusyBox's wget too
	// As Wget2 1.99 does, it takes no credentials from the URL of a proxy.
	wget2 = contents{programs: []string{"dash"}, without: []string{"wget"}, files: map[string]string{
		"usr/bin/wget": `#!/bin/sh
[ "$2" != --version ] || { echo 'GNU Wget2 1.99.1 - multithreaded metalink/file/website downloader'; exit; }
unset http_proxy
for arg; do shift; [ "$arg" = --no-config ] || set -- "$@" "$arg"; done
exec busybox wget "$@"
`}}
)

// of returns those contents for an ordinary user.
func (c contents) of(id int) contents {
	c.user = id
	return c
}

// The commands do the same in each box, with each client and for each user.
func TestCommandsInOtherBoxes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cell{
		"podman, user":                  {engine: "podman", image: contents{}.of(ordinary)},
		"podman, user, curl, read-only": {engine: "podman", image: curl.of(ordinary), flags: []string{"--read-only"}},
		"podman, GNU wget, configured":  {engine: "podman", image: gnuWget},
		"docker, user, curl":            {engine: "docker", image: curl.of(ordinary)},
		"docker, user, read-only":       {engine: "docker", image: contents{}.of(ordinary), flags: []string{"--read-only"}},
		"rootless podman":               {engine: "podman", rootless: true},
		"rootless podman, user, curl, read-only": {engine: "podman", rootless: true, image: curl.of(ordinary),
			flags: []string{"--read-only"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, c.engine)
			p.installOrders()
			ref := busybox(t, c.engine, c.image)
			user := c.image.user
			if c.rootless { // in such a box, user 0 is the one who runs aileron
				p.rootless(t, ref)
				user = 0
			}
			p.tryCell(c, ref, user)
		})
	}
}

// apart is set in the environment of a test binary that runs in namespaces of its own, to the directory of what the
// suite built.
const apart = "AILERON_SHIMS_APART"

// Where the sandbox is not sealed, the commands reach the session by a port of the host, and with its token.
func TestCommandsInABoxThatIsNotSealed(t *testing.T) {
	if os.Getenv(apart) == "" {
		t.Parallel()
		if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
			harness.Need(t, "root and a dockerd of its own (scripts/prepare --tests)")
		}
		harness.TestApart(t, apart+"="+filepath.Dir(binary), syscall.CLONE_NEWNET|syscall.CLONE_NEWNS)
		return
	}
	must.Get(harness.Loopback())(t)
	p := personOf(t, "docker")
	harness.HiddenDocker(t, filepath.Join(p.home, "sessions"))
	p.installOrders()
	for name, c := range map[string]cell{
		"BusyBox's wget":          {shown: true},
		"curl, user":              {image: curl.of(ordinary)},
		"GNU wget":                {image: gnuWget},
		"Wget2":                   {image: wget2, shown: true},
		"BusyBox's wget and curl": {image: both},
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.t = t
			said := p.tryCell(c, busybox(t, "docker", c.image), c.image.user)
			if !strings.Contains(said, "NOT SEALED") {
				t.Errorf("the box is sealed: %s", said)
			}
		})
	}
}

const inACell = `
call() { printf '<%s>' "$1"; shift; "$@" 2>/tmp/err; printf '<exit %s><' "$?"; cat /tmp/err; echo '>'; }
echo "<user $(id -u)> <client $(command -v wget || command -v curl)>"
call get github user.get
call proxies env ALL_PROXY=socks5://127.0.0.1:9 all_proxy=socks5://127.0.0.1:9 github user.get
call missing github users.get --args '{"username":"none"}'
call invalid github users.get --args '{"username":7}'
call denied orders read
call denied-json orders read --json
call pending orders place
printf '{"owner":"a","repo":"b","title":"%s"}' "of standard input" >/tmp/args
call stdin github issues.create --args - </tmp/args
ls -A /tmp | grep aileron
sh -x /usr/local/bin/github user.get >/tmp/trace 2>&1; grep -q Bearer /tmp/trace && echo '<shown>'
find /opt/aileron/manifests -name '*.toml' | grep -c orders@1.0.0
`

// tryCell runs the commands in a box of a cell, and returns what aileron says.
func (p *person) tryCell(c cell, image string, user int) string {
	t := p.t
	t.Helper()
	must.Do(t, os.Chown(p.project, max(c.image.user, p.user), -1))
	r := p.box(image, inACell, append(c.flags, "--resolve", "api.orders.example:443:"+p.origin.Addr)...)
	client := "wget>"
	if slices.Contains(c.image.programs, "curl") && len(c.image.without) > 0 {
		client = "<client " + pathOf(t, "curl") + ">"
	}
	const unbound = "orders read: aileron: no credential is bound for github://acme/orders. Ask the user to bind a " +
		"credential: aileron binding setup github://acme/orders\naudit id: 01"
	for _, want := range []string{
		"<user " + strconv.Itoa(user) + ">", client,
		`<get>{"login":"octo-stand-in"}<exit 0><>`, `<proxies>{"login":"octo-stand-in"}<exit 0><>`,
		`<missing>{"message":"Not Found"}<exit 1><github users.get: the upstream responded with status 404` +
			"\naudit id: 01",
		"<invalid><exit 2><github users.get: aileron: args.username: it is not a string. Nothing was sent.",
		"\nhint: github users.get --help lists the arguments\n>",
		"<denied><exit 1><" + unbound, `<denied-json>{"error":{`, `"class":"binding_required"`, "\n<exit 1><" + unbound,
		"<pending><exit 75><orders place: aileron: orders place waits for the user's approval ",
		`<stdin>{"title":"of standard input"}<exit 0><>` + "\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if strings.Contains(r.out, ".aileron") || !strings.HasSuffix(r.out, "\n1\n") {
		t.Error("a temporary file is left, or the manifest is missing")
	}
	if shown := strings.Contains(r.out, "<shown>"); shown != c.shown {
		t.Errorf("the token is in an argument: %v", shown)
	}
	for _, s := range p.origin.Seen() {
		if s.Path == "/v1/orders" {
			t.Errorf("the service got %s %s", s.Method, s.Path)
		}
	}
	if rows := p.aileron("audit", "list", "--json", "--limit", "0").out; r.code != 0 || t.Failed() ||
		!strings.Contains(rows, `"source":"generated_connector_shim"`) {
		t.Errorf("exit %d\n%s\n%s\n%.3000s", r.code, r.out, r.err, rows)
	}
	return r.err
}

// rootless makes the person a user without rights, whose engine has an image.
func (p *person) rootless(t *testing.T, image string) {
	t.Helper()
	dir := filepath.Dir(p.home)
	must.Do(p.t, os.Chmod(dir, 0o755))
	p.as, p.user = harness.Rootless(t, dir), harness.RootlessUser
	harness.HandOver(t, []string{image}, p.engine, p.as...)
	roots, own := filepath.Join(dir, "roots.pem"), strconv.Itoa(p.user)
	harness.Copy(p.t, p.origin.Roots, roots)
	p.origin.Roots = roots
	chown := exec.CommandContext(p.t.Context(), "chown", "-R", own+":"+own, p.home, p.project, roots)
	if out, err := chown.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %v\n%s", chown.Args, err, out)
	}
}

// installOrders installs a connector without a credential, one of whose operations needs one, and the other an
// approval.
func (p *person) installOrders() {
	p.t.Helper()
	dir := p.t.TempDir()
	for name, text := range map[string]string{
		"manifest.toml": "[connector]\nname = \"github://acme/orders\"\nversion = \"1.0.0\"\n" +
			"[capabilities.network]\nhosts = [\"api.orders.example:443\"]\n" +
			"[capabilities.credential]\nkind = \"api_key\"\nscope = \"Orders\"\n",
		"aileron.connector.v1.json": `{"schema_version":"aileron.connector.v1","connector":{
			"fqn":"github://acme/orders","version":"1.0.0"},"tools":[{"name":"orders","operations":[
			{"name":"place","method":"POST","path":"/v1/orders","hosts":["api.orders.example"],"approval":"required"},
			{"name":"read","method":"GET","path":"/v1/orders","hosts":["api.orders.example"],"credential":{
				"kind":"api_key","inject":{"in":"header","name":"X-Api-Key","format":"{secret}"}}}]}]}`,
	} {
		must.Do(p.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if r := p.aileron("connector", "install", dir, "--yes"); r.code != 0 {
		p.t.Fatalf("install: %s", r.err)
	}
}
