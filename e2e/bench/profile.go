package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// profiler takes CPU profiles of aileron, one for each scenario.
type profiler struct {
	dir string // where they go
	out string // where aileron writes the one under way
	pid int
}

// buildProfiled builds aileron with a handler of signals laid over it, which
// the product has no use for.
func buildProfiled(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	module := string(root[:len(root)-1])
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(module, "cmd/aileron/bench_profile.go"): filepath.Join(module, "e2e/bench/testdata/profile/profile.go"),
	}})
	if err != nil {
		return "", err
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "aileron")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", binary, module+"/cmd/aileron")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build aileron for profiles: %w\n%s", err, out)
	}
	return binary, nil
}

func (p *profiler) begin() error {
	_ = os.Remove(p.out)
	return syscall.Kill(p.pid, syscall.SIGUSR1)
}

// end keeps the profiles as the scenario's; each turn replaces the last.
func (p *profiler) end(scenario string) error {
	if err := syscall.Kill(p.pid, syscall.SIGUSR2); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 500 { // the one of the CPU is there last
		if _, err := os.Stat(p.out); err == nil {
			return p.keep(scenario)
		}
		<-tick.C
	}
	return errors.New("aileron wrote no profile")
}

func (p *profiler) keep(scenario string) error {
	for _, kind := range []string{"", ".heap", ".goroutine"} {
		raw, err := os.ReadFile(p.out + kind)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.dir, scenario+kind+".pprof"), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}
