package attacks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// vlt: the vault's files, and what stands around them.
func vlt() category { return category{name: "VLT"} }

// program is the built aileron, made once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(on.dir, "aileron")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "../../cmd/aileron")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build aileron: %w\n%s", err, out)
	}
	return path, nil
})

// person is somebody who runs the built program, with a home of their own.
type person struct {
	t    testing.TB
	dir  string // HOME, with TMPDIR in it
	home string // AILERON_HOME
	env  []string
}

func newPerson(t testing.TB) *person {
	t.Helper()
	dir, err := os.MkdirTemp(on.dir, "person-")
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: dir, home: filepath.Join(dir, "h")}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"), "AILERON_HOME=" + p.home, "AILERON_VAULT_PASSPHRASE=" + passphrase}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) command(args ...string) *exec.Cmd {
	p.t.Helper()
	path, err := program()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// install installs connectors of the fixture.
func (p *person) install(names ...string) {
	p.t.Helper()
	for _, name := range names {
		dir, err := filepath.Abs(filepath.Join("testdata", "connectors", name))
		if err != nil {
			p.t.Fatal(err)
		}
		p.must("connector", "install", dir, "--yes")
	}
}

// bind installs connectors of the fixture and binds their secrets.
func (p *person) bind(names ...string) {
	p.t.Helper()
	p.install(names...)
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
	log, err := audit.OpenReader(filepath.Join(p.home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	rows, err := log.List(context.Background(), audit.Filter{AfterSeq: after})
	if err != nil {
		p.t.Errorf("read the audit log: %v", err)
	}
	return rows
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
	said   *safeBuffer
	once   sync.Once
	left   error // of the process
}

// start opens a session that trusts the fixture's roots, and waits until it
// is ready.
func (p *person) start(flags ...string) *session {
	p.t.Helper()
	s := &session{said: &safeBuffer{}}
	s.cmd = p.command(append([]string{"proxy", "--json", "--log-level", "debug", "--upstream-ca", on.rootsFile}, flags...)...)
	s.cmd.Stderr = s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.wait()
		p.t.Fatalf("the session did not start: %s", s.said.bytes())
	}
	var ready struct {
		SessionID string `json:"session_id"`
		ProxyURL  string `json:"proxy_url"`
		CAFile    string `json:"ca_file"`
		APIURL    string `json:"api_url"`
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		p.t.Fatalf("%q: %v", line, err)
	}
	at, err := url.Parse(ready.ProxyURL)
	if err != nil {
		p.t.Fatal(err)
	}
	pem, err := os.ReadFile(ready.CAFile)
	if err != nil {
		p.t.Fatal(err)
	}
	s.id, s.caFile, s.api = ready.SessionID, ready.CAFile, ready.APIURL
	token, _ := at.User.Password()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	s.subject = subject{addr: at.Host, token: token, roots: roots, rows: p.rows, last: p.last, patience: 20 * time.Second,
		logs: s.said.bytes, files: func() []string { return []string{p.dir} }, plane: &world{crippled: true}} // no control request: not every session has its connector
	return s
}

func (s *session) port() string { return s.addr[strings.LastIndexByte(s.addr, ':')+1:] }

func (s *session) wait() error {
	s.once.Do(func() { s.left = s.cmd.Wait() })
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
func (s *session) on(c *trial, name string, run func(*trial)) {
	for _, fail := range try(c.t, &s.subject, c.name+"/"+name, run, nil) {
		c.failf("%s: %s", name, fail)
	}
}

// listening gives the addresses on which a session's process listens.
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
