package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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
	startsAlone = "ms more than the command alone"
	startsHost  = "ms, the command alone"
	startsBox   = "ms, a sandbox"
	endsPlain   = "ms after the end, plain"
	endsBox     = "ms after the end, sandbox"

	startsFiles      = "ms more with 50000 files"
	startsConnectors = "ms more with 200 connectors"
	manyFiles        = 50_000
	startConnectors  = 200
)

func startMetrics(added metric, plain string) []metric {
	return []metric{added, atMost(startsFiles, 150), atMost(startsConnectors, 100),
		figure(plain), figure(startsBox), figure(endsPlain), figure(endsBox)}
}

// native is the kind of a sandbox without an engine.
const native = "native"

// boxes is aileron set up for sandboxes: a home without connectors, and an empty project.
type boxes struct {
	*home
	project string
	image   map[string]string // of plain containers, by the engine
	bound   map[string]bool   // connectors of the catalogue

	large, connected *boxes // the same with many files, and with many connectors; nil: not made yet
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

// grow makes large and connected, and starts each once: what is known of an image then is kept.
func (b *boxes) grow(ctx context.Context, engine string, t turn) error {
	if b.large == nil {
		large, connected := *b, *b
		dir := filepath.Dir(b.project)
		large.project = filepath.Join(dir, "large")
		if err := writeFiles(large.project, t.many(manyFiles)); err != nil {
			return err
		}
		connected.home = &home{binary: b.binary, dir: filepath.Join(dir, "connected"), passphrase: b.passphrase}
		sources, err := writeConnectors(filepath.Join(dir, "connectors"), t.many(startConnectors))
		if err != nil {
			return err
		}
		if _, err := connected.run(ctx, append([]string{"connector", "install", "--yes"}, sources...)...); err != nil {
			return err
		}
		b.large, b.connected = &large, &connected
	}
	for _, b := range []*boxes{b.large, b.connected} {
		if _, err := b.run(ctx, b.sealed(engine, "true")...); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes n files into a new directory, fifty to a directory of it.
func writeFiles(dir string, n int) error {
	for i := range n {
		in := filepath.Join(dir, fmt.Sprint("module", i/1000), fmt.Sprint("package", i/50))
		if i%50 == 0 {
			if err := os.MkdirAll(in, 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("source_%d.go", i)), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sealed returns the arguments that run a command in a sandbox.
func (b *boxes) sealed(engine string, command ...string) []string {
	return append([]string{"sandbox", "run", "--quiet", "--sandbox", engine, "--dir", b.project, "--"}, command...)
}

// starting compares a command in a sandbox with the same in a plain container of the same image, which has no network
// either, or, where there is no engine, with the command alone: in turns and in any order. It compares it with the same
// in a large project and with many connectors too. The command prints the time: what follows it is the end.
func starting(engine string) func(context.Context, *subject, turn) (figures, error) {
	return func(ctx context.Context, s *subject, t turn) (figures, error) {
		b, err := s.box(ctx, engine)
		if err != nil {
			return nil, err
		}
		if err := b.grow(ctx, engine, t); err != nil {
			return nil, err
		}
		command := []string{"date", "+%s%N"}
		plain, added := startsPlain, startsAdded
		inPlain := append([]string{engine, "run", "--rm", "--network", "none", b.image[engine]}, command...)
		if engine == native {
			plain, added, inPlain = startsHost, startsAlone, command
		}
		whole, end := map[string][]time.Duration{}, map[string][]time.Duration{}
		for range t.many(4) {
			for name, cmd := range map[string]*exec.Cmd{
				plain:            plainCommand(ctx, inPlain[0], inPlain[1:]...),
				startsBox:        b.command(b.sealed(engine, command...)...),
				startsFiles:      b.large.command(b.large.sealed(engine, command...)...),
				startsConnectors: b.connected.command(b.connected.sealed(engine, command...)...),
			} {
				took, after, err := timed(ctx, cmd)
				if err != nil {
					return nil, err
				}
				whole[name], end[name] = append(whole[name], took), append(end[name], after)
				// The engine does what is left of a container: Podman looks through its storage, and Docker's daemon lets go of
				// mounts. Who starts one sandbox has no other's end beside it.
				if err := settle(ctx, 400*time.Millisecond); err != nil {
					return nil, err
				}
			}
		}
		f := figures{plain: middle(whole[plain]), startsBox: middle(whole[startsBox]),
			endsPlain: middle(end[plain]), endsBox: middle(end[startsBox])}
		f[added] = f[startsBox] - f[plain]
		for _, name := range []string{startsFiles, startsConnectors} {
			f[name] = middle(whole[name]) - f[startsBox]
		}
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

// makesNamespaces returns an error where this user may make none.
func makesNamespaces(ctx context.Context) error {
	err := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc",
		"true").Run()
	if err != nil {
		return errors.New("this host lets its user make no namespaces")
	}
	return nil
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
