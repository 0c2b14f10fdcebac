package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	startsAdded = "ms more than a container"
	startsPlain = "ms, a plain container"
	startsBox   = "ms, a sandbox"
	endsPlain   = "ms after the end, plain"
	endsBox     = "ms after the end, sandbox"
)

func startMetrics() []metric {
	return []metric{atMost(startsAdded, 400), figure(startsPlain), figure(startsBox), figure(endsPlain), figure(endsBox)}
}

// boxes is aileron set up for sandboxes: a home without connectors, and an empty project.
type boxes struct {
	*home
	project string
	image   map[string]string // of plain containers, by the engine
	bound   map[string]bool   // connectors of the catalogue
}

// box returns what sandboxes of an engine need. The first call for an engine makes the image where it is missing, and
// looks into it.
func (y *fixture) box(ctx context.Context, engine string) (*boxes, error) {
	if y.boxes == nil {
		binary, err := filepath.Abs(y.options.aileron)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(y.cfg.dir, "boxes")
		b := &boxes{home: &home{binary: binary, dir: filepath.Join(dir, "home"), passphrase: y.home.passphrase},
			project: filepath.Join(dir, "project"), image: map[string]string{}, bound: map[string]bool{}}
		if err := os.MkdirAll(b.project, 0o700); err != nil {
			return nil, err
		}
		y.boxes = b
	}
	if y.boxes.image[engine] == "" {
		out, err := y.boxes.run(ctx, y.boxes.sealed(engine, "sh", "-c", "echo $AILERON_SANDBOX_IMAGE")...)
		if err != nil {
			return nil, err
		}
		y.boxes.image[engine] = strings.TrimSpace(string(out))
	}
	return y.boxes, nil
}

// sealed returns the arguments that run a command in a sandbox.
func (b *boxes) sealed(engine string, command ...string) []string {
	return append([]string{"sandbox", "run", "--quiet", "--sandbox", engine, "--dir", b.project, "--"}, command...)
}

// starting compares a command in a sandbox with the same in a plain container of the same image, which has no network
// either, in turns. The command prints the time: what follows it is the end.
func starting(engine string) func(context.Context, *subject, turn) (figures, error) {
	return func(ctx context.Context, s *subject, t turn) (figures, error) {
		b, err := s.box(ctx, engine)
		if err != nil {
			return nil, err
		}
		command := []string{"date", "+%s%N"}
		var plain, sealed, plainEnd, sealedEnd []time.Duration
		for range t.many(4) {
			whole, end, err := timed(ctx, plainCommand(ctx, engine,
				append([]string{"run", "--rm", "--network", "none", b.image[engine]}, command...)...))
			if err != nil {
				return nil, err
			}
			plain, plainEnd = append(plain, whole), append(plainEnd, end)
			if whole, end, err = timed(ctx, b.command(b.sealed(engine, command...)...)); err != nil {
				return nil, err
			}
			sealed, sealedEnd = append(sealed, whole), append(sealedEnd, end)
		}
		f := figures{startsPlain: middle(plain), startsBox: middle(sealed), endsPlain: middle(plainEnd),
			endsBox: middle(sealedEnd)}
		f[startsAdded] = f[startsBox] - f[startsPlain]
		return f, nil
	}
}

// timed runs a command that prints the time in nanoseconds, and returns how long it took, and how much of that came
// after what it printed.
func timed(ctx context.Context, cmd *exec.Cmd) (whole, end time.Duration, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err = cmd.Wait()
	ended := time.Now()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errs.Bytes())
	}
	at, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%s printed no time: %w", strings.Join(cmd.Args, " "), err)
	}
	return ended.Sub(began), ended.Sub(time.Unix(0, at)), nil
}

// middle returns the median of times in milliseconds.
func middle(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}

// plainCommand is a command of an engine's own client.
func plainCommand(ctx context.Context, engine string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, engine, args...)
	cmd.Env = os.Environ()
	if conf := podmanConf(); conf != "" {
		cmd.Env = append(cmd.Env, "CONTAINERS_CONF="+conf)
	}
	return cmd
}

// podmanConf returns the configuration of scripts/prepare, without which Podman's own client starts no container on
// some hosts; "" is the user's own, or none.
func podmanConf() string {
	cache, _ := os.UserCacheDir()
	conf := filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), cache), "aileron", "containers.conf")
	if _, err := os.Stat(conf); err != nil || os.Getenv("CONTAINERS_CONF") != "" {
		return ""
	}
	return conf
}

// responds returns an error where an engine does not respond.
func responds(engine string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := plainCommand(ctx, engine, "version").Run(); err != nil {
			return fmt.Errorf("%s does not respond", engine)
		}
		return nil
	}
}
