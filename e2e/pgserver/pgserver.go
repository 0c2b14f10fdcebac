// Package pgserver runs a PostgreSQL of the host for tests: [Start] in a directory of its own, without a port, and as a
// user that is not root.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a server that runs.
type Server struct {
	dir     string
	bin     string
	cmd     *exec.Cmd
	running bool
}

// binaries returns the directory of PostgreSQL's programs, "" if it is not installed.
func binaries() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's
	slices.Sort(found)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// New makes a cluster and starts it. The caller must call Remove. The error is [ErrMissing] if there is no PostgreSQL.
func New() (*Server, error) {
	s := &Server{bin: binaries()}
	if s.bin == "" {
		return nil, ErrMissing
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // a short path: it has a socket
		return nil, err
	}
	init := s.program("initdb", "--pgdata", s.data(), "--username", "owner", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C", "--no-sync", "--no-instructions")
	if out, err := init.CombinedOutput(); err != nil {
		s.Remove()
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := s.Run(); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// ErrMissing is returned where PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is not installed: scripts/prepare --tests")

// Start is New for one test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Remove)
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// program returns a command that does not run as root, which PostgreSQL refuses.
func (s *Server) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	drop(cmd)
	return cmd
}

// Run starts the server, and waits until it accepts connections.
func (s *Server) Run() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.program("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_wal_size=4GB", "-c", "shared_buffers=128MB")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.running = true
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		ready := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.dir)
		if ready.Run() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			s.Kill()
			out, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL does not start:\n%s", out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, with all of its connections, as a crash does.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

// Freeze stops the server's processes until thaw is called.
func (s *Server) Freeze() (thaw func()) {
	pids := s.processes()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// processes returns the server's process and its children.
func (s *Server) processes() []int {
	pids := []int{s.cmd.Process.Pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", s.cmd.Process.Pid))
	for text := range strings.FieldsSeq(string(children)) {
		var pid int
		if _, err := fmt.Sscan(text, &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *Server) end(sig syscall.Signal) {
	if s.running {
		_ = s.cmd.Process.Signal(sig)
		_ = s.cmd.Wait()
		s.running = false
	}
}

// Remove ends the server and removes its directory.
func (s *Server) Remove() {
	s.end(syscall.SIGQUIT)
	_ = os.RemoveAll(s.dir)
}

// Dir returns the directory of the server's socket.
func (s *Server) Dir() string { return s.dir }

// URL returns the URL of a database for a role; owner may do everything.
func (s *Server) URL(role, database string) string {
	q := url.Values{"host": {s.dir}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + q.Encode()
}

// SQL executes statements as the owner, and returns their output: a line per row, columns separated by |.
func (s *Server) SQL(t testing.TB, database, statements string) string {
	t.Helper()
	out, err := s.Psql("owner", database, statements)
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return out
}

// Psql executes statements as a role.
func (s *Server) Psql(role, database, statements string) (string, error) {
	cmd := exec.Command(filepath.Join(s.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", s.dir,
		"-U", role, "-d", database)
	cmd.Stdin = strings.NewReader(statements)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Database creates an empty database.
func (s *Server) Database(t testing.TB, name string) {
	t.Helper()
	s.SQL(t, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE); CREATE DATABASE "+name)
}
