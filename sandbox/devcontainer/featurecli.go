package devcontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// CLI is the reference implementation on this host. It resolves and fetches features, and does nothing else here.
type CLI struct {
	Path    string
	search  string // PATH without directories of the project
	nothing string // a program that does nothing, in place of an engine
}

const installCLI = "install the reference implementation, which fetches features: npm install -g @devcontainers/cli"

// NoCLI is the hint of an error because of which features are refused.
const NoCLI = installCLI + "; or install what they bring in a Dockerfile; or start without the devcontainer: " +
	"--devcontainer=off"

// FindCLI finds the reference implementation. Neither it nor what it starts is a program of the project in the
// directory project.
func FindCLI(project string) (*CLI, error) {
	within := insideOf(project)
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !within(dir) {
			dirs = append(dirs, dir)
		}
	}
	c := &CLI{search: strings.Join(dirs, string(filepath.ListSeparator))}
	for _, p := range []struct {
		name string
		at   *string
	}{{"devcontainer", &c.Path}, {"true", &c.nothing}, {"node", nil}, {"git", nil}} {
		found := lookIn(dirs, p.name)
		if found == "" && p.at == &c.Path {
			// A directory of the project alone has it, perhaps.
			found, _ = exec.LookPath(p.name)
		}
		switch {
		case found != "" && (within(found) || !filepath.IsAbs(found)):
			return nil, hint.New(fmt.Errorf("use features: the %s on the PATH is %s, a file of the project", p.name, found),
				"%s", NoCLI)
		case p.at == nil:
		case found == "" && p.at == &c.Path:
			return nil, hint.New(errors.New("use features: the reference implementation that fetches them is not installed: "+
				"there is no devcontainer on the PATH"), "%s", NoCLI)
		case found == "":
			return nil, hint.New(fmt.Errorf("use features: there is no %s on the PATH", p.name), "install it")
		default:
			*p.at = found
		}
	}
	return c, nil
}

// insideOf returns what reports whether a path, or what it leads to, is in a directory.
func insideOf(dir string) func(name string) bool {
	dirs := []string{dir}
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dirs = append(dirs, at)
	}
	return func(name string) bool {
		names := []string{name}
		if at, err := filepath.EvalSymlinks(name); err == nil {
			names = append(names, at)
		}
		for _, dir := range dirs {
			for _, name := range names {
				if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
					return true
				}
			}
		}
		return false
	}
}

// lookIn returns the first program of a name in directories; "" for none.
func lookIn(dirs []string, name string) string {
	for _, dir := range dirs {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	return ""
}

// testedCLI is the oldest version that is used. Some before it unpack hard links to files of this host.
var testedCLI = [3]int{0, 89, 0}

// checkVersion returns an error for a version that was not tested.
func (c *CLI) checkVersion(ctx context.Context, dir string) error {
	out, err := c.run(ctx, dir, "--version")
	if err != nil {
		return err
	}
	var v [3]int
	text := strings.TrimSpace(string(out))
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || slices.Compare(v[:], testedCLI[:]) < 0 {
		return hint.New(fmt.Errorf("fetch features with %s: its version is %.40q, and the oldest that is used is %d.%d.%d",
			c.Path, text, testedCLI[0], testedCLI[1], testedCLI[2]), "%s", installCLI)
	}
	return nil
}

const (
	fetchTime   = 10 * time.Minute
	fetchGrace  = 5 * time.Second
	maxAnswer   = 16 << 20
	maxFetchLog = 64 << 10
	// maxUnpacked bounds the bytes of this host's disk that a fetch has at a time, archives among them, and maxNames its
	// files. One is looked at after another, so more is there for a moment. maxOneFile is held by the kernel.
	maxUnpacked = 4 * maxContextBytes
	maxNames    = 4 * maxEntries
	maxOneFile  = 2 * maxContextBytes
	lookEvery   = 200 * time.Millisecond
)

// ofNetwork are the variables of this host that a fetch gets.
func ofNetwork() []string {
	return []string{"HOME", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy",
		"no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"}
}

// run runs the program in the directory of a fetch and returns what it prints.
func (c *CLI) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)
	// A unit of ulimit has 512 bytes.
	const bound = `ulimit -f "$1" && shift && exec "$@"`
	args = append([]string{"-c", bound, "sh", strconv.Itoa(maxOneFile >> 9), c.Path}, args...)
	cmd := exec.CommandContext(limited, "/bin/sh", args...) //nolint:gosec // a person has installed what it starts
	cmd.Dir = filepath.Join(dir, fetchProject)
	for _, name := range ofNetwork() {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+c.search, "TMPDIR="+filepath.Join(dir, fetchTemp),
		"DOCKER_CONFIG="+filepath.Join(dir, fetchConfig))
	out, log := &bounded{limit: maxAnswer}, &bounded{limit: maxFetchLog, last: true}
	cmd.Stdout, cmd.Stderr = out, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = fetchGrace
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watchSize(limited, dir, stop)
	}()
	err := cmd.Run()
	full := context.Cause(limited)
	stop(nil)
	<-watched
	if full != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(full, errTooMuch):
		err = full
	case full != nil:
		err = fmt.Errorf("it did not end within %s", fetchTime)
	case err == nil && out.more:
		err = fmt.Errorf("it printed more than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return nil, hint.New(fmt.Errorf("fetch features with %s: %w%s", c.Path, err, log.lastLines()),
			"correct the names of the features, and see whether their registry can be reached without a credential; or "+
				"start without the devcontainer: --devcontainer=off")
	}
	return out.data, nil
}

var errTooMuch = fmt.Errorf("what it unpacks has more than %d MiB, or %d files", maxUnpacked>>20, maxNames)

// watchSize calls stop with errTooMuch when the files below a directory exceed their bounds, until ctx ends.
func watchSize(ctx context.Context, dir string, stop context.CancelCauseFunc) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		size, names := int64(0), 0
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil {
				return ctx.Err() // a file that is gone has no size
			}
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
			if names++; size > maxUnpacked || names > maxNames {
				return errTooMuch
			}
			return nil
		})
		if errors.Is(err, errTooMuch) {
			stop(errTooMuch)
			return
		}
	}
}

// bounded keeps the first bytes of what is written, or the last.
type bounded struct {
	limit int
	last  bool
	data  []byte
	more  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - b.limit; over > 0 {
		b.more = true
		if b.last {
			b.data = append(b.data[:0], b.data[over:]...)
		} else {
			b.data = b.data[:b.limit]
		}
	}
	return len(p), nil
}

// shownLines bounds the lines of the log that an error has.
const shownLines = 8

// lastLines returns the last lines, in one.
func (b *bounded) lastLines() string {
	lines := strings.Split(strings.TrimSpace(string(b.data)), "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	if text := strings.Join(lines, " | "); text != "" {
		return ": " + termsafe.Line(text)
	}
	return ""
}
