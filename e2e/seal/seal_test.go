package seal

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

// attempt is one line of the probe's.
type attempt struct {
	Name, Result, Detail string
	Timeout              bool
}

func TestNothingLeavesABox(t *testing.T) {
	for _, c := range []struct {
		name, engine string
		owner        int
		flood        bool
	}{
		{"podman, as root", "podman", 0, false},
		{"podman, as a user", "podman", 1000, true},
		{"docker, as root", "docker", 0, false},
		{"docker, as a user", "docker", 1000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			needEngine(t, c.engine)
			p := newPerson(t, c.engine, c.owner, must.OpenDir(t))
			p.tryEverything(c.owner, c.flood)
		})
	}
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine+", rootless", func(t *testing.T) {
			rootless(t, engine).tryEverything(harness.RootlessUser, false)
		})
	}
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine+", elsewhere", func(t *testing.T) {
			harness.Turn(t)
			elsewhere(t, engine).tryEverything(0, false)
		})
	}
	t.Run("native, as a user", func(t *testing.T) {
		nativeUser(t).tryEverything(harness.RootlessUser, true)
	})
	t.Run("native, as root", func(t *testing.T) {
		newPerson(t, sandbox.Native, 0, must.OpenDir(t)).tryEverything(0, false)
	})
	t.Run("native, as root for a user's project", func(t *testing.T) {
		newPerson(t, sandbox.Native, harness.RootlessUser, must.OpenDir(t)).tryEverything(harness.RootlessUser, false)
	})
}

func needEngine(t *testing.T, engine string) {
	t.Helper()
	err := exec.Command(engine, "version").Run()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: %v, and in CI the seal must be tried on both engines; scripts/prepare --tests installs them", engine,
			err)
	}
	t.Skipf("%s: %v; scripts/prepare --tests installs both engines, scripts/with-docker runs Docker's daemon", engine, err)
}

// tryEverything runs the probe in a box and judges what came of it.
func (p *person) tryEverything(owner int, flood bool) {
	t := p.t
	host := listenOnTheHost(t)
	plan := map[string]any{
		"Name": stub.Echo, "Ports": ports, "Hosts": host.addresses, "Abstract": host.abstract,
		"Processes": []int{os.Getpid(), os.Getppid()},
		"Paths":     []string{filepath.Dir(host.socket), host.socket}, "Denied": deniedCalls(t), "Needles": p.needles(),
		"Flood": flood, "Public": p.public(),
	}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plan.json": data, "canary": []byte("..." + canary + "...")} {
		must.Do(t, os.WriteFile(filepath.Join(p.project, name), data, 0o644))
	}
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", owner, owner),
		p.project).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := watchAll(t)
	r := p.box("./probe")
	if r.code != 0 { // what it said until then is judged all the same
		t.Errorf("the box ended with %d\n%s", r.code, r.err)
	}
	var attempts []attempt
	lines := bufio.NewScanner(strings.NewReader(r.out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a attempt
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Errorf("the probe said %q", lines.Text())
			continue
		}
		attempts = append(attempts, a)
	}
	sent := w.take(t)
	if path := os.Getenv("AILERON_SEAL_RAW"); path != "" {
		_ = os.WriteFile(filepath.Join(path, strings.ReplaceAll(t.Name(), "/", "_")),
			[]byte(r.out+fmt.Sprint(sent)+"\n"+r.err), 0o600)
	}
	p.judge(attempts)
	p.look(attempts)
	p.account(attempts, sent)
	if n := host.heard.Load(); n != 0 {
		t.Errorf("the host's listeners heard %d connections or messages", n)
	}
	if out, _ := exec.Command("grep", "-rlF", secret[:16], p.project, p.home).CombinedOutput(); len(out) > 0 {
		t.Errorf("the secret is in %s", out)
	}
	if left := p.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
	p.must("audit", "verify")
}

// host is what a box would like to reach.
type host struct {
	addresses        []string
	abstract, socket string
	heard            atomic.Int64
}

func listenOnTheHost(t *testing.T) *host {
	t.Helper()
	h := &host{abstract: fmt.Sprintf("aileron-seal-%d-%s", os.Getpid(), filepath.Base(t.TempDir())),
		socket: filepath.Join(t.TempDir(), "agent.sock")}
	listen := func(network, at string) net.Listener {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				h.heard.Add(1)
				_ = conn.Close()
			}
		}()
		return l
	}
	_, port, _ := net.SplitHostPort(listen("tcp", ":0").Addr().String())
	for _, at := range append([]string{"127.0.0.1", "::1"}, hostAddresses...) {
		h.addresses = append(h.addresses, net.JoinHostPort(at, port))
	}
	listen("unix", h.socket)
	listen("unix", "@"+h.abstract)
	// It can be reached from here, so that it is the box that cannot.
	for _, c := range [][2]string{{"unix", "@" + h.abstract}, {"unix", h.socket}, {"tcp", h.addresses[2]},
		{"tcp", h.addresses[3]}} {
		conn := must.Get(net.Dial(c[0], c[1]))(t)
		_, _ = conn.Read(make([]byte, 1)) // it has been heard when it ends
		_ = conn.Close()
	}
	h.heard.Store(0)
	return h
}

// canary may be found, and a variable of the box: they show that the search
// finds.
const canary = "canary-canary-canary"

// needles are what no box may hold, complemented, see the probe.
func (p *person) needles() map[string]string {
	plain := map[string]string{"the canary": canary, "the control": "AILERON_SESSION_ID=", "the vault's path": p.home}
	for name, s := range map[string]string{"the secret": secret, "the passphrase": passphrase} {
		plain[name] = s[:16]
		plain[name+"'s end"] = s[len(s)-16:]
		plain[name+" in hexadecimal"] = hex.EncodeToString([]byte(s))[:32]
		plain[name+" in URLs"] = url.QueryEscape(s)[:16]
		for shift := range 3 { // the whole groups between its ends
			plain[fmt.Sprint(name, " in base64, ", shift)] = base64.StdEncoding.EncodeToString([]byte(s[shift:]))[:16]
		}
	}
	// The session's keys are of P-256: how such a key begins, however it is
	// written.
	pkcs8, _ := hex.DecodeString("308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420")
	plain["a private key, PKCS #8"], plain["a private key, PEM"] = string(pkcs8), base64.StdEncoding.EncodeToString(pkcs8)
	coded := map[string]string{}
	for name, s := range plain {
		b := []byte(s)
		for i := range b {
			b[i] = ^b[i]
		}
		coded[name] = base64.StdEncoding.EncodeToString(b)
	}
	return coded
}

// deniedCalls are the kernel's system calls that the profile does not name,
// with their numbers on this machine.
func deniedCalls(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile("../../sandbox/seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		Syscalls []struct {
			Names  []string
			Action string
		}
	}
	must.Do(t, json.Unmarshal(data, &profile))
	denied := systemCalls(t)
	// The kernel lets these two pass every filter (they do nothing outside its
	// own trampolines, and kill who calls them elsewhere).
	delete(denied, "uprobe")
	delete(denied, "uretprobe")
	for _, s := range profile.Syscalls {
		for _, name := range s.Names {
			if s.Action == "SCMP_ACT_ALLOW" {
				delete(denied, name)
			}
		}
	}
	if len(denied) < 80 {
		t.Fatalf("the profile leaves only %d calls out", len(denied))
	}
	return denied
}

var callLine = regexp.MustCompile(`(?m)^\s+SYS_([A-Z0-9_]+)\s+= (\d+)$`)

// systemCalls are this architecture's, as golang.org/x/sys has them.
func systemCalls(t *testing.T) map[string]int {
	t.Helper()
	out := must.Get(exec.Command("go", "list", "-f", "{{.Dir}} {{context.GOARCH}}", "golang.org/x/sys/unix").Output())(t)
	dir, arch, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	data := must.Get(os.ReadFile(filepath.Join(dir, "zsysnum_linux_"+arch+".go")))(t)
	calls := map[string]int{}
	for _, m := range callLine.FindAllStringSubmatch(string(data), -1) {
		var n int
		_, _ = fmt.Sscan(m[2], &n)
		calls[strings.ToLower(m[1])] = n
	}
	if len(calls) < 300 {
		t.Fatalf("only %d system calls are known", len(calls))
	}
	return calls
}
