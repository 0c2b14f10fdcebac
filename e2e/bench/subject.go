package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// subject is one way to the origin, and the process that makes it, if any.
type subject struct {
	name   string
	addr   string         // of the proxy; of the origin for the direct way
	auth   string         // the Proxy-Authorization field, "" for none
	roots  *x509.CertPool // what its clients trust
	origin string         // the origin's address
	proc   *process       // nil: there is none between client and origin
	pid    int

	// another starts one more session of aileron, on the same home, or on one of its own with room for many tunnels and
	// a login.
	another func(ctx context.Context, wide bool) (*subject, error)
	install func(ctx context.Context, connectors int) (time.Duration, error) // in a new home, with bindings
	box     func(ctx context.Context, engine string) (*boxes, error)

	sent atomic.Int64 // requests that left for the origin
	// elsewhere is how many requests its sessions on another home sent.
	elsewhere atomic.Int64
	hosts     atomic.Int64 // names of scenario C that it has seen
}

func (s *subject) direct() bool { return s.proc == nil }

// stop ends the subject's process.
func (s *subject) stop() {
	if s.proc != nil && s.pid != 0 {
		s.proc.stop()
		s.pid = 0
	}
}

// process is a part of the bench, or aileron, that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	announcement
}

// start runs a command and waits for its announcement.
func start(ctx context.Context, cmd *exec.Cmd) (*process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// An interrupt of the terminal is the bench's to pass on, in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin}
	line := make(chan []byte, 1)
	go func() { l, _ := bufio.NewReader(stdout).ReadBytes('\n'); line <- l }()
	select {
	case raw := <-line:
		if err = json.Unmarshal(raw, &p.announcement); err == nil {
			return p, nil
		}
		err = fmt.Errorf("it said %q", raw)
	case <-time.After(stuck):
		err = errors.New("it said nothing")
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.stop()
	return nil, fmt.Errorf("start %s: %w", cmd.Args[0], err)
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	late.Stop()
}

// startPart starts this program again as one of its parts.
func startPart(ctx context.Context, name string, cfg partConfig) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, name, "--dir", cfg.dir, "--origin", cfg.origin)
	cmd.Env = append(os.Environ(), partEnv+"=1")
	cmd.Stderr = os.Stderr
	return start(ctx, cmd)
}

// partEnv is set in the environment of a test binary that runs as a part.
const partEnv = "AILERON_BENCH_PART"

// subjectOf is the way through a running proxy.
func subjectOf(name, origin string, p *process) (*subject, error) {
	u, err := url.Parse(p.ProxyURL)
	if err != nil {
		return nil, err
	}
	roots, err := rootsOf(p.CAFile)
	if err != nil {
		return nil, err
	}
	s := &subject{name: name, addr: u.Host, roots: roots, origin: origin, proc: p, pid: p.cmd.Process.Pid}
	if token, ok := u.User.Password(); ok {
		s.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+token))
	}
	return s, nil
}

// spent is the CPU time of the proxy, and the time, that f takes.
func (s *subject) spent(f func() error) (cpu, wall time.Duration, err error) {
	var before, after time.Duration
	if !s.direct() {
		if before, err = cpuTime(s.pid); err != nil {
			return 0, 0, err
		}
	}
	began := time.Now()
	if err = f(); err != nil {
		return 0, 0, err
	}
	wall = time.Since(began)
	if !s.direct() {
		after, err = cpuTime(s.pid)
	}
	return after - before, wall, err
}
