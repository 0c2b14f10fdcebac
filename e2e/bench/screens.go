package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

const (
	screenAdded = "ms more than a container"
	screenPlain = "ms, a plain container"
	screenBox   = "ms, aileron launch"
)

// screenTime is when an agent that shows nothing is given up.
const screenTime = 3 * time.Minute

func screenMetrics() []metric {
	return []metric{atMost(screenAdded, 1500), figure(screenPlain), figure(screenBox)}
}

// prompts are how agents start, and what is on their screen when they wait for a prompt, without spaces. In both
// containers the API refuses connections: what an agent asks of it at its start is no part of the figure.
var prompts = map[string]struct{ connector, api, variable, args, ready string }{
	"claude": {"anthropic", "api.anthropic.com", "ANTHROPIC_API_KEY=sk-ant-placeholder", "--model claude-sonnet-4-5",
		"shortcuts"},
	"codex": {"openai", "api.openai.com", "OPENAI_API_KEY=sk-placeholder", "-m gpt-5", "AskCodextodoanything"},
	"opencode": {"anthropic", "api.anthropic.com", "ANTHROPIC_API_KEY=sk-ant-placeholder",
		"-m anthropic/claude-sonnet-4-5", "Askanything"},
}

// agentImage returns the image of an agent.
func agentImage(agent agents.Agent) string { return sandbox.AgentImage(agent.Name, agent.Recipe).Ref }

// hasImage returns an error where Podman does not have an agent's image, which takes minutes to build.
func hasImage(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		agent, _ := agents.Find(name)
		if err := plainCommand(ctx, "podman", "image", "exists", agentImage(agent)).Run(); err != nil {
			return fmt.Errorf("podman has no image of %s (aileron sandbox build --agent %[1]s)", name)
		}
		return nil
	}
}

// screens compares the time until an agent waits for a prompt in a sandbox, with a key that is bound and a vault that
// is opened by its passphrase, with that of the same command in a plain container of the same image.
func screens(name string) func(context.Context, *subject, turn) (figures, error) {
	return func(ctx context.Context, s *subject, t turn) (figures, error) {
		b, err := s.box(ctx, "podman")
		if err != nil {
			return nil, err
		}
		p := prompts[name]
		if err := b.bind(ctx, p.connector); err != nil {
			return nil, err
		}
		agent, _ := agents.Find(name)
		args := append(append([]string{agent.Commands[0]}, agent.Args...), strings.Fields(p.args)...)
		var plain, sealed []time.Duration
		for range t.many(3) {
			container := "aileron-bench-" + strings.ToLower(rand.Text())
			run := []string{"run", "--rm", "--init", "--user", "0:0", "--interactive", "--tty", "--network", "none", "--name",
				container,
				"--volume", b.project + ":" + sandbox.Workspace, "--workdir", sandbox.Workspace, "--env", p.variable,
				"--env", "HOME=" + path.Dir(sandbox.Workspace)}
			for k, v := range agent.Env {
				run = append(run, "--env", k+"="+v)
			}
			run = append(run, agentImage(agent), "sh", "-c", agent.Start("")+"\nexec \"$@\"", "sh")
			took, err := firstScreen(ctx, plainCommand(ctx, "podman", append(run, args...)...), p.ready)
			_ = plainCommand(context.WithoutCancel(ctx), "podman", "rm", "--force", "--ignore", container).Run()
			if err != nil {
				return nil, err
			}
			plain = append(plain, took)
			launch := append([]string{"launch", "--quiet", "--sandbox", "podman", "--sandbox-build", "never", "--keep=false",
				"--dir", b.project, "--resolve", p.api + ":443:127.0.0.1:1", name, "--"}, strings.Fields(p.args)...)
			if took, err = firstScreen(ctx, b.command(launch...), p.ready); err != nil {
				return nil, err
			}
			sealed = append(sealed, took)
		}
		f := figures{screenPlain: middle(plain), screenBox: middle(sealed)}
		f[screenAdded] = f[screenBox] - f[screenPlain]
		return f, nil
	}
}

// bind installs a connector of the catalogue and binds a key to it, once.
func (b *boxes) bind(ctx context.Context, connector string) error {
	if b.bound[connector] {
		return nil
	}
	key := filepath.Join(filepath.Dir(b.dir), "key")
	if err := os.WriteFile(key, []byte("sk-ant-api03-of-the-bench\n"), 0o600); err != nil {
		return err
	}
	if _, err := b.run(ctx, "connector", "install", connector, "--yes"); err != nil {
		return err
	}
	_, err := b.run(ctx, "binding", "setup", connector, "--identity", "bench", "--secret-file", key)
	b.bound[connector] = err == nil
	return err
}

// sequences are control sequences, strings and other escapes of ECMA-48.
var sequences = regexp.MustCompile("\x1b(\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|" +
	"[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")

// firstScreen runs a command in a terminal, returns how long it took until the text was on it, and ends the command.
func firstScreen(ctx context.Context, cmd *exec.Cmd, text string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, screenTime)
	defer cancel()
	began := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		return 0, err
	}
	var reading sync.WaitGroup
	shown, took := bytes.Buffer{}, time.Duration(0)
	there := make(chan struct{})
	reading.Go(func() { // ends with the terminal
		buf := make([]byte, 64<<10)
		for {
			n, err := terminal.Read(buf)
			if err != nil {
				return
			}
			shown.Write(buf[:n])
			if bytes.Contains(buf[:n], []byte("\x1b[6n")) { // where is the cursor?
				_, _ = terminal.WriteString("\x1b[1;1R")
			}
			plain := sequences.ReplaceAll(shown.Bytes(), []byte(" "))
			if took == 0 && bytes.Contains(bytes.Join(bytes.Fields(plain), nil), []byte(text)) {
				took = time.Since(began)
				close(there)
			}
		}
	})
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-there:
	case <-ended:
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
	_ = terminal.Close()
	reading.Wait()
	if took == 0 {
		return 0, fmt.Errorf("%s does not show %q:\n%.4000s", cmd.Args[0], text, shown.Bytes())
	}
	return took, nil
}
