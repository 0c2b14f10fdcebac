package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	restAll     = "% of a core, in all"
	restPlane   = "% of a core, aileron"
	restGateway = "% of a core, gateway"
	restEngine  = "% of a core, engine"

	restSettles = 10 * time.Second // until what a start leaves to be done later is done
	restSeconds = 60
)

func restMetrics() []metric {
	return []metric{atMost(restAll, 0.2), figure(restPlane), figure(restGateway), figure(restEngine)}
}

// atRest measures what a session costs whose command sleeps, on Podman, with a connector and an open vault: aileron
// with its reaper, the gateway, and what Podman runs for it, which are its service and a monitor for each container.
func atRest(ctx context.Context, s *subject, t turn) (figures, error) {
	b, err := s.box(ctx, "podman")
	if err != nil {
		return nil, err
	}
	if err := b.bind(ctx, "anthropic"); err != nil {
		return nil, err
	}
	begun := filepath.Join(b.project, "begun")
	if err := os.Remove(begun); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var errs bytes.Buffer
	cmd := b.command(b.sealed("podman", "sh", "-c", "touch begun; exec sleep infinity")...)
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer end(cmd, ended)
	for {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if err := pass(ctx, ended, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, errs.Bytes())
		}
	}
	if err := pass(ctx, ended, restSettles); err != nil {
		return nil, err
	}
	parts, err := b.parts(cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	before, err := parts.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pass(ctx, ended, time.Duration(t.many(restSeconds))*time.Second); err != nil {
		return nil, err
	}
	after, err := parts.cpu()
	took := time.Since(began)
	f := figures{}
	for name := range parts {
		f[name] = 100 * (after[name] - before[name]).Seconds() / took.Seconds()
		f[restAll] += f[name]
	}
	return f, err
}

// pass waits, and returns an error where the session ends meanwhile.
func pass(ctx context.Context, ended chan struct{}, d time.Duration) error {
	select {
	case <-ended:
		return errors.New("the session has ended")
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// end ends a session and waits for it.
func end(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stuck):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// sessionParts are the processes of a session, by the metric that counts them.
type sessionParts map[string][]int

// parts returns the processes of the only session of the home, which has the first process pid. All parts must be
// there, for a process that was overlooked costs nothing.
func (b *boxes) parts(pid int) (sessionParts, error) {
	sessions, err := os.ReadDir(filepath.Join(b.dir, "sessions"))
	if err != nil {
		return nil, err
	}
	if len(sessions) != 1 {
		return nil, fmt.Errorf("%d sessions run, not one", len(sessions))
	}
	children, lines := map[int][]int{}, map[int]string{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		stat, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // proc(5): the state, the parent
		if len(fields) < 2 {
			continue // it has ended
		}
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], p)
		lines[p] = string(line)
	}
	parts := sessionParts{restPlane: {pid}}
	for _, child := range children[pid] {
		if part := restPlane; strings.HasPrefix(lines[child], b.binary+"\x00") {
			parts[part] = append(parts[part], child)
		} else {
			parts[restEngine] = append(parts[restEngine], child)
		}
	}
	id := "aileron-" + sessions[0].Name()
	for p, line := range lines {
		switch args := strings.Split(line, "\x00"); {
		case slices.Contains(args, id+"-gw"):
			parts[restGateway] = append(parts[restGateway], children[p]...)
			parts[restEngine] = append(parts[restEngine], p)
		case slices.Contains(args, id+"-box"):
			parts[restEngine] = append(parts[restEngine], p)
		}
	}
	if len(parts[restPlane]) < 2 || len(parts[restGateway]) != 1 || len(parts[restEngine]) < 3 {
		return nil, fmt.Errorf("of the session's processes, %v were found: not all", parts)
	}
	return parts, nil
}

// cpu returns the CPU time of each part.
func (p sessionParts) cpu() (map[string]time.Duration, error) {
	spent := map[string]time.Duration{}
	for name, pids := range p {
		for _, pid := range pids {
			d, err := cpuTime(pid)
			if err != nil {
				return nil, err
			}
			spent[name] += d
		}
	}
	return spent, nil
}
