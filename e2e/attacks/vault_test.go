package attacks

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

// vlt: the vault's files, and what stands around them.
func vlt() category {
	return category{name: "VLT", cases: []attack{
		{id: "VLT-01", does: "all is the owner's alone whatever the umask is, and nothing is read that others could have " +
			"put there", run: vltModes},
		{id: "VLT-02", does: "every wrong passphrase gets the same answer, at the same price", run: vltWrong},
		{id: "VLT-04", does: "a work factor that is too low or too high is refused before any work", run: vltFactors},
		{id: "VLT-05", does: "killed at any system call that changes a file, the vault is the old one or the new one",
			run: vltKilled},
		{id: "VLT-07", does: "of many who write at once none loses anything", run: vltCrowd},
		{id: "VLT-08", does: "no secret stands in any file, argument, environment or dump but sealed", run: vltTraces},
		{id: "VLT-09", does: "no other process of the user reads a session, and one that crashes leaves no core file and " +
			"no secret in its stacks", run: vltUndumpable},
		{id: "VLT-10", does: "without a keyring, or with one that fails, nothing is kept in the clear and the reason is said",
			run: vltKeyring},
		{id: "VLT-11", does: "a lock lets what is under way end, refuses what comes, and is undone without a restart",
			run: vltLocked},
	}}
}

func vltModes(c *testCase) {
	p := newPerson(c.t)
	p.mask = true
	p.bind("api")
	s := p.start()
	s.stop()
	c.must(filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			c.failf("%s has the mode %v", path, info.Mode())
		}
		return err
	}))
	dir := filepath.Join(p.home, "vault")
	binding := filepath.Join(dir, "bindings", "bearer", "api", "test.json")
	aside := filepath.Join(p.dir, "aside")
	away := func(path string) error { return os.Rename(path, aside) }
	back := func(path string) func() error {
		return func() error { return errors.Join(os.RemoveAll(path), os.Rename(aside, path)) }
	}
	for name, change := range map[string]struct{ do, undo func() error }{
		"everybody may write to the home": {func() error { return os.Chmod(p.home, 0o777) },
			func() error { return os.Chmod(p.home, 0o700) }},
		"everybody may write to the vault": {func() error { return os.Chmod(dir, 0o777) },
			func() error { return os.Chmod(dir, 0o700) }},
		"everybody may write to the binding": {func() error { return os.Chmod(binding, 0o666) },
			func() error { return os.Chmod(binding, 0o600) }},
		"the vault is a link": {func() error { return errors.Join(away(dir), os.Symlink(aside, dir)) },
			back(dir)},
		"the vault is a file": {func() error { return errors.Join(away(dir), os.WriteFile(dir, nil, 0o600)) },
			back(dir)},
		"the binding is a link": {func() error { return errors.Join(away(binding), os.Symlink(aside, binding)) },
			back(binding)},
		"the binding has a second name": {func() error { return os.Link(binding, aside) },
			func() error { return os.Remove(aside) }},
		"the binding is a pipe": {func() error {
			return errors.Join(away(binding),
				syscall.Mkfifo(binding, 0o600))
		}, back(binding)},
		"the binding is a directory": {func() error { return errors.Join(away(binding), os.Mkdir(binding, 0o700)) },
			back(binding)},
	} {
		c.must(change.do())
		if name == "the vault is a file" {
			if e := p.run("vault", "init"); e.code != 1 {
				c.failf("%s: vault init: %s", name, e)
			}
		} else if e := p.run("proxy", "--json"); e.code != 1 || !strings.Contains(e.err, "vault") {
			c.failf("%s: a session: %s", name, e)
		}
		c.must(change.undo())
	}
	p.must("binding", "list")
}

func vltWrong(c *testCase) {
	p := newReleased(c.t)
	p.newVault()
	said := map[string]bool{}
	for _, wrong := range []string{"wrong but long", passphrase + " ", passphrase[:len(passphrase)-1],
		repeated("x", 100<<10)} {
		p.env = append(p.env, "AILERON_VAULT_PASSPHRASE="+wrong)
		e := p.run("vault", "unlock")
		if e.code != 1 || !strings.Contains(e.err, "passphrase is wrong") {
			c.failf("%.30q: %s", wrong, e)
		}
		said[e.err] = true
	}
	if len(said) != 1 {
		c.failf("the answers differ: %v", said)
	}
	p.env = append(p.env, "AILERON_VAULT_PASSPHRASE=")
	if e := p.run("vault", "unlock"); e.code != 1 || !strings.Contains(e.err, "no terminal to ask on") {
		c.failf("an empty one: %s", e)
	}
	large := filepath.Join(p.dir, "large")
	c.must(os.WriteFile(large, make([]byte, 1<<20), 0o600))
	if e := p.run("vault", "unlock", "--passphrase-file", large); e.code != 1 {
		c.failf("a megabyte: %s", e)
	}
	p.env = append(p.env, "AILERON_VAULT_PASSPHRASE="+passphrase)
	p.must("vault", "unlock")
	p = newReleased(c.t)
	p.must("vault", "init")
	header, err := os.ReadFile(filepath.Join(p.home, "vault", "identity.age"))
	c.must(err)
	factor := regexp.MustCompile(`(?m)^-> scrypt \S+ (\d+)$`).FindSubmatch(header)
	if factor == nil {
		c.failf("the vault is not sealed with scrypt: %.60q", header)
	} else if n, err := strconv.Atoi(string(factor[1])); err != nil || n < 16 {
		c.failf("the work factor is %s", factor[1])
	}
}

func vltFactors(c *testCase) {
	p := newReleased(c.t)
	p.newVault()
	dir := filepath.Join(p.home, "vault")
	honest, err := os.ReadFile(filepath.Join(dir, "identity.age"))
	c.must(err)
	refused := func(what string) {
		if e := p.run("vault", "unlock"); e.code != 1 || !strings.Contains(e.err, "work factor") {
			c.failf("%s: %s", what, e)
		}
	}
	for _, factor := range []string{"21", "30", "62", "-1", "17.5", "017"} {
		edited := regexp.MustCompile(`(?m)^(-> scrypt \S+) \d+$`).ReplaceAll(honest, []byte("${1} "+factor))
		c.must(os.WriteFile(filepath.Join(dir, "identity.age"), edited, 0o600))
		if e := p.run("vault", "unlock"); e.code != 1 || strings.Contains(e.err, "passphrase is wrong") {
			c.failf("the factor %s: %s", factor, e)
		}
	}
	// One who can write the vault, and knows the passphrase's owner will open
	// it, seals it so that the passphrase is cheap to guess from a copy.
	for _, factor := range []int{1, 10, 15} {
		sealed, recipient, err := sealVault(factor)
		c.must(err)
		c.must(os.WriteFile(filepath.Join(dir, "identity.age"), sealed, 0o600))
		c.must(os.WriteFile(filepath.Join(dir, "recipient"), recipient, 0o600))
		refused(fmt.Sprint("sealed with ", factor))
	}
}

func vltKilled(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	dir := filepath.Join(p.home, "vault")
	v := vault.Open(dir, vault.TestOnlyWorkFactor(10))
	c.must(v.Unlock([]byte(passphrase)))
	const name = "bearer/api/test"
	changes := map[uint64]bool{unix.SYS_FSYNC: true, unix.SYS_FDATASYNC: true, unix.SYS_RENAMEAT: true,
		unix.SYS_RENAMEAT2: true, unix.SYS_UNLINKAT: true, unix.SYS_MKDIRAT: true}
	old, seen := on.secrets["S1"], map[string]int{}
	for at := 1; ; at++ {
		fresh := fmt.Sprintf("%s-%d", on.secrets["S1"], at)
		cmd := p.command("binding", "rebind", name, "--secret-stdin")
		cmd.Stdin = strings.NewReader(fresh)
		killed, err := killAt(cmd, at, func(nr uint64) bool { return changes[nr] })
		c.must(err)
		cred, err := v.Credential(name)
		if err != nil {
			c.failf("killed at call %d: %v", at, err)
			return
		}
		switch cred.Secret.Reveal() {
		case old:
			seen["old"]++
		case fresh:
			seen["new"]++
		default:
			c.failf("killed at call %d: it is neither the old secret nor the new one", at)
		}
		if !killed {
			break
		}
		old = cred.Secret.Reveal()
	}
	if seen["old"] < 2 || seen["new"] < 1 {
		c.failf("the kills did not meet the write: %v", seen)
	}
	// The same way of writing, without a passphrase's price: every call at all.
	locked := filepath.Join(dir, "locked")
	for at, killed := 1, true; killed; at++ {
		_ = os.Remove(locked)
		var err error
		killed, err = killAt(p.command("vault", "lock"), at, func(nr uint64) bool {
			return changes[nr] || nr == unix.SYS_WRITE || nr == unix.SYS_FLOCK || nr == unix.SYS_CLOSE
		})
		c.must(err)
		if text, err := os.ReadFile(locked); err == nil && string(text) != "locked\n" {
			c.failf("killed at call %d: the mark is %q", at, text)
		}
	}
	c.must(os.Remove(locked))
	p.must("binding", "list")
	if left, _ := filepath.Glob(filepath.Join(dir, "bindings", "bearer", "api", "*")); len(left) != 1 {
		c.failf("%v is left", left)
	}
}

func vltCrowd(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	dir := filepath.Join(p.home, "vault")
	const writers, each = 4, 20
	fresh, err := vault.NewSecret([]byte("a-fresh-secret-of-a-person"))
	c.must(err)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() { // the lock is the file's: two openers are as good as two processes
			v := vault.Open(dir)
			for i := range each {
				identity := fmt.Sprintf("w%d-%d", w, i)
				b := vault.Binding{Name: "bearer/api/" + identity, Kind: "bearer", Connector: "github://attacks/api",
					Identity: identity}
				if err := errors.Join(v.Bind(b, fresh), v.Rebind("bearer/api/test", "", fresh)); err != nil {
					c.failf("writer %d: %v", w, err)
				}
			}
		})
	}
	for i := range 2 {
		writing.Go(func() {
			if e := p.tell(on.secrets["S1"], "binding", "setup", "github://attacks/api", "--identity", fmt.Sprint("process-", i),
				"--secret-stdin"); e.code != 0 {
				c.failf("process %d: %s", i, e)
			}
		})
	}
	c.waitAll("the writers of the vault", &writing)
	all, err := vault.Open(dir).Bindings()
	if want := writers*each + 3; err != nil || len(all) != want {
		c.failf("%d bindings, %v, want %d", len(all), err, want)
	}
}

func vltTraces(c *testCase) {
	p := newReleased(c.t)
	p.bind("api", "basic", "q")
	s := p.start()
	s.on(c, "traffic", func(c *testCase) {
		c.origin("api.good.test").plays((*visit).echo)
		c.origin("basic.good.test").plays((*visit).echo)
		c.is("an echo", c.get("api.good.test", "/v1/echo"), 200)
		c.is("an echo", c.get("basic.good.test", "/v1/items"), 200)
		c.is("a query", c.get("q.good.test", "/v1/items?x=1"), 200)
	})
	for _, kept := range []string{"cmdline", "environ"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, kept))
		c.must(err)
		if of := on.leaks.Find(data); of != "" {
			c.failf("%s holds %s", kept, of)
		}
	}
	if e := p.tell(on.secrets["S6"], "binding", "rebind", "bearer/api/test", "--secret-stdin"); e.code != 0 {
		c.failf("rebind: %s", e)
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // a crash with all of its stacks
	_ = s.wait()
	if !bytes.Contains(s.logs(), []byte("goroutine ")) {
		c.failf("there was no dump to search")
	}
	searchFiles(p.t.(*testing.T), &s.subject) // HOME and TMPDIR, what the crash left included
}

func vltKeyring(c *testCase) {
	silent, err := net.Listen("unix", filepath.Join(on.dir, "bus"))
	c.must(err)
	defer silent.Close()
	for name, env := range map[string][]string{
		"no bus":     {"XDG_RUNTIME_DIR=" + on.dir + "/none"},
		"a dead bus": {"XDG_RUNTIME_DIR=" + on.dir + "/none", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + on.dir + "/dead"},
		"a silent bus": {"XDG_RUNTIME_DIR=" + on.dir + "/none",
			"DBUS_SESSION_BUS_ADDRESS=unix:path=" + silent.Addr().String()},
	} {
		p := newPerson(c.t)
		p.install("api")
		p.env = append(append(p.env, env...), "AILERON_VAULT_PASSPHRASE=")
		if e := p.tell(on.secrets["S1"], "binding", "setup", "github://attacks/api", "--secret-stdin"); e.code != 1 ||
			!strings.Contains(e.err, "AILERON_VAULT_PASSPHRASE") {
			c.failf("%s: binding setup: %s", name, e)
		}
		p.env = append(p.env, "AILERON_VAULT_PASSPHRASE="+passphrase)
		if name == "no bus" {
			p.newVault()
			p.must("vault", "unlock")
		} else if e := p.run("vault", "init", "--keyring"); e.code != 1 || !strings.Contains(e.err, "keyring") {
			c.failf("%s: vault init --keyring: %s", name, e)
		}
		for _, kept := range []string{passphrase, on.secrets["S1"]} {
			c.must(filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(path)
				if bytes.Contains(data, []byte(kept)) {
					c.failf("%s: %s holds it in the clear", name, path)
				}
				return err
			}))
		}
	}
}

func vltLocked(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	s := p.start()
	defer s.stop()
	api := c.origin("api.good.test")
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	api.plays(func(v *visit) {
		if v.Target == "/v1/echo" {
			arrived <- struct{}{}
			<-release
		}
		v.reply(200, "it went on")
	})
	d := &testCase{t: c.t, s: &s.subject, name: c.name}
	slow := make(chan answer, 1)
	go func() { slow <- d.get("api.good.test", "/v1/echo") }()
	c.wait("the request at the origin", arrived)
	p.must("vault", "lock")
	d.eventually("new requests are refused",
		func() bool { return d.get("api.good.test", "/v1/items").reason == "vault_locked" })
	before := len(api.seen())
	a := d.get("api.good.test", "/v1/items")
	d.refused("while it is locked", a, vaultLocked)
	if a.class != "unavailable" || len(api.seen()) != before {
		c.failf("while it is locked: %s, and %d requests left", a, len(api.seen())-before)
	}
	close(release)
	d.is("what was under way", <-slow, 200)
	p.must("vault", "unlock")
	d.eventually("it serves again", func() bool { return d.get("api.good.test", "/v1/items").status == 200 })
	api.reset()
	c.fails = append(c.fails, d.fails...)
}

// killAt runs a command and kills it when it is about to make the n-th system
// call that counts. killed is false when it ended before.
func killAt(cmd *exec.Cmd, n int, counts func(nr uint64) bool) (killed bool, err error) {
	runtime.LockOSThread() // only the thread that started it may trace it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Ptrace, cmd.SysProcAttr.Setpgid = true, true
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer func() { _ = cmd.Wait() }() // for its pipes: it was reaped below
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return false, err
	}
	const goodSignal, exitKill = 0x1, 0x100000
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACECLONE|goodSignal|exitKill); err != nil {
		return false, err
	}
	for tid, deliver := pid, 0; ; {
		_ = syscall.PtraceSyscall(tid, deliver)
		// The group's: the test has other children.
		if tid, err = syscall.Wait4(-pid, &status, syscall.WALL, nil); err != nil {
			return killed, err
		}
		deliver = 0
		switch {
		case status.Exited() || status.Signaled():
			if tid == pid {
				return killed, nil
			}
		case status.StopSignal() == syscall.SIGTRAP|0x80:
			// PTRACE_GET_SYSCALL_INFO: struct ptrace_syscall_info of ptrace(2).
			var info [88]byte
			_, _, failed := syscall.Syscall6(syscall.SYS_PTRACE, 0x420e, uintptr(tid), uintptr(len(info)),
				uintptr(unsafe.Pointer(&info[0])), 0, 0)
			const entry = 1
			if failed == 0 && info[0] == entry && counts(binary.NativeEndian.Uint64(info[24:])) {
				if n--; n == 0 {
					killed = true
					_ = cmd.Process.Kill()
				}
			}
		case status.StopSignal() != syscall.SIGTRAP && status.StopSignal() != syscall.SIGSTOP:
			deliver = int(status.StopSignal())
		}
	}
}

// person is a user of the built program, with a home of their own.
type person struct {
	t    testing.TB
	dir  string // HOME, with TMPDIR in it
	home string // AILERON_HOME
	env  []string
	mask bool // run with a umask that forbids nothing

	released bool // the program has vaults of the real price

	as    *syscall.Credential // nil: who runs the test
	cores bool                // run with a core limit that forbids nothing
}

func newPerson(t testing.TB) *person {
	t.Helper()
	dir, err := os.MkdirTemp(on.dir, "person-")
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: dir, home: filepath.Join(dir, "h")}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"),
		"AILERON_HOME=" + p.home, "AILERON_VAULT_PASSPHRASE=" + passphrase}
	must.Do(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	return p
}

// newReleased is a person with the program as it is released, for what depends on the price of a passphrase. The
// others' opens cheap vaults: docs/testing.md.
func newReleased(t testing.TB) *person {
	p := newPerson(t)
	p.released = true
	return p
}

func (p *person) command(args ...string) *exec.Cmd {
	p.t.Helper()
	path := must.Get(program(p.released)())(p.t)
	if p.mask {
		path, args = "/bin/sh", append([]string{"-c", `umask 000; exec "$0" "$@"`, path}, args...)
	}
	if p.cores {
		path, args = "/bin/sh", append([]string{"-c", `ulimit -c unlimited; exec "$0" "$@"`, path}, args...)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: p.as}
	return cmd
}

type ended struct {
	out, err string
	code     int
}

func (e ended) String() string { return fmt.Sprintf("exit %d: %s%s", e.code, e.out, e.err) }

// tell runs a verb to its end with something on its standard input.
func (p *person) tell(input string, args ...string) ended {
	p.t.Helper()
	cmd := p.command(args...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return ended{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (p *person) run(args ...string) ended { return p.tell("", args...) }

func (p *person) must(args ...string) ended {
	p.t.Helper()
	e := p.run(args...)
	if e.code != 0 {
		p.t.Fatalf("aileron %s: %s", strings.Join(args, " "), e)
	}
	return e
}

// sealVault makes what opens a vault, sealed by the passphrase.
func sealVault(factor int) (sealed, recipient []byte, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, nil, err
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, nil, err
	}
	to.SetWorkFactor(factor)
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, nil, err
	}
	_, err = io.WriteString(w, identity.String())
	err = errors.Join(err, w.Close())
	return out.Bytes(), []byte(identity.Recipient().String() + "\n"), err
}

// vaults are the cheapest that the program opens, as it is released and as it is built for tests.
var vaults = map[bool]func() ([2][]byte, error){true: sync.OnceValues(vaultOf(16)), false: sync.OnceValues(vaultOf(10))}

func vaultOf(factor int) func() ([2][]byte, error) {
	return func() ([2][]byte, error) {
		sealed, recipient, err := sealVault(factor)
		return [2][]byte{sealed, recipient}, err
	}
}

// newVault creates a vault for the person that is cheap to open.
func (p *person) newVault() {
	p.t.Helper()
	files, err := vaults[p.released]()
	if err != nil {
		p.t.Fatal(err)
	}
	dir := filepath.Join(p.home, "vault")
	must.Do(p.t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "recipient"), files[1], 0o600),
		os.WriteFile(filepath.Join(dir, "identity.age"), files[0], 0o600)))
}

// install installs connectors of the fixture.
func (p *person) install(names ...string) {
	p.t.Helper()
	for _, name := range names {
		dir := must.Get(filepath.Abs(filepath.Join("testdata", "connectors", name)))(p.t)
		p.must("connector", "install", dir, "--yes")
	}
}

// bind installs connectors of the fixture and binds their secrets.
func (p *person) bind(names ...string) {
	p.t.Helper()
	p.install(names...)
	p.newVault()
	for _, c := range connectors {
		for _, name := range names {
			if c.name != name {
				continue
			}
			args := []string{"binding", "setup", "github://attacks/" + name, "--identity", "test", "--secret-stdin"}
			if c.user != "" {
				args = append(args, "--username", c.user)
			}
			if e := p.tell(on.secrets[c.secret], args...); e.code != 0 {
				p.t.Fatalf("bind %s: %s", name, e)
			}
		}
	}
}

// rows reads the audit log as another process does.
func (p *person) rows(after int64) []audit.Row {
	return harness.AuditRows(p.t, p.home, audit.Filter{AfterSeq: after})
}

func (p *person) last() int64 {
	rows := p.rows(0)
	if len(rows) == 0 {
		return 0
	}
	return rows[len(rows)-1].Seq
}

// session is a running "aileron proxy": a subject like any other.
type session struct {
	subject
	cmd    *exec.Cmd
	id     string
	caFile string
	api    string
	said   *must.Output
	t      testing.TB
	once   sync.Once
	left   error // of the process
}

// start opens a session that trusts the fixture's roots, and waits until it
// is ready.
func (p *person) start(flags ...string) *session {
	p.t.Helper()
	s := &session{said: &must.Output{}, t: p.t}
	s.cmd = p.command(append([]string{"proxy", "--json", "--log-level", "debug", "--upstream-ca", on.rootsFile},
		flags...)...)
	s.cmd.Stderr = s.said
	ready := must.Get(harness.StartProxy(s.cmd))(p.t)
	p.t.Cleanup(s.kill)
	at := must.Get(ready.Proxy())(p.t)
	roots := must.Get(ready.Roots())(p.t)
	s.id, s.caFile, s.api = ready.SessionID, ready.CAFile, ready.APIURL
	token, _ := at.User.Password()
	s.subject = subject{addr: at.Host, token: token, roots: roots, rows: p.rows, last: p.last, patience: patience,
		// no control request: not every session has its connector
		logs: s.said.Bytes, files: func() []string { return []string{p.dir} }, plane: &world{crippled: true}}
	return s
}

func (s *session) port() string { return s.addr[strings.LastIndexByte(s.addr, ':')+1:] }

func (s *session) wait() error {
	s.once.Do(func() {
		late := time.AfterFunc(patience, func() {
			s.t.Errorf("the session %s did not end within %v: %s", s.id, patience, s.said.Bytes())
			_ = s.cmd.Process.Kill()
		})
		defer late.Stop()
		s.left = s.cmd.Wait()
	})
	return s.left
}

// stop ends the session as a person does; kill ends it as a fault does.
func (s *session) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.wait()
}

func (s *session) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.wait()
}

// on runs a variant against the session, with all oracles but the control
// request.
func (s *session) on(c *testCase, name string, run func(*testCase)) {
	for _, fail := range try(c.t, &s.subject, c.name+"/"+name, run, nil) {
		c.failf("%s: %s", name, fail)
	}
}

// listening returns the addresses on which a session's process listens.
func (p *person) listening(s *session) []string {
	sockets := map[string]bool{}
	dir := fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	var all []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			p.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) < 10 || fields[3] != listen || !sockets[fields[9]] {
				continue
			}
			host, port, _ := strings.Cut(fields[1], ":")
			raw, err := hex.DecodeString(host)
			n, err2 := strconv.ParseUint(port, 16, 16)
			if err != nil || err2 != nil || len(raw) != 4 {
				all = append(all, fields[1])
				continue
			}
			all = append(all, fmt.Sprintf("%d.%d.%d.%d:%d", raw[3], raw[2], raw[1], raw[0], n))
		}
	}
	return all
}
