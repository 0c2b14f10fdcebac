package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/terminal"
)

// A detached session lives in a process of its own, which launch, sandbox run and proxy start with --detach once
// there is nothing left to ask. That process, aileron detached, runs the same command line again, in a session of
// processes of its own. What only the first one could find out, the key of the vault above all, goes through a socket
// that only the two have, and so does the report that the command has begun, or that the proxy serves. Until then the
// second process prints where the first one does, and ends if the first one does.

// handover is what the process of a detached session gets first, as a line of JSON. The key follows.
type handover struct {
	Size      terminal.Size // of the terminal from which it is detached
	KeyLength int           // 0: the vault is not needed
}

// handoverFile is the descriptor of the socket in the process of a detached session.
const handoverFile = 3

// begunWord begins the line by which that process reports that the command has begun. The session's id follows.
const begunWord = "begun "

// defaultSize is that of a terminal that is not known.
var defaultSize = terminal.Size{Height: 24, Width: 80}

// Detach runs this command line again, in a process of its own, and returns the session's id when its command has
// begun, or when its proxy serves. The vault is that of opts, if it was opened.
func (a *App) Detach(ctx context.Context, opts *SessionOptions) (id string, err error) {
	size := defaultSize
	if tty := a.ChildTerminal(); tty != nil {
		if s, ok := terminal.SizeOf(tty); ok && s.Height > 0 && s.Width > 0 {
			size = s
		}
	}
	var key []byte
	if opts.Opened != nil && opts.Opened.Unlocked() {
		if key, err = opts.Opened.Key(); err != nil {
			return "", fmt.Errorf("detach the session: %w", err)
		}
		defer clear(key)
	}
	d, err := a.startDetached(handover{Size: size, KeyLength: len(key)}, key)
	if err != nil {
		return "", fmt.Errorf("detach the session: %w", err)
	}
	defer d.socket.Close()
	return d.await(ctx)
}

// detaching is the process of a detached session, seen from the one that started it.
type detaching struct {
	cmd    *exec.Cmd
	socket *os.File
}

// startDetached starts the process and gives it what it needs.
func (a *App) startDetached(h handover, key []byte) (*detaching, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "handover"), os.NewFile(uintptr(pair[1]), "handover")
	defer theirs.Close()
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, append([]string{"detached", "--"}, a.args...)...)
	cmd.Stdout, cmd.Stderr = a.Child.Stdout, a.Child.Stderr
	cmd.ExtraFiles = []*os.File{handoverFile - 3: theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	d := &detaching{cmd: cmd, socket: ours}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	head, err := json.Marshal(h)
	if err == nil {
		_, err = ours.Write(append(head, '\n'))
	}
	if err == nil && len(key) > 0 {
		_, err = ours.Write(key)
	}
	if err != nil {
		_ = ours.Close() // which ends it
		_ = cmd.Wait()
		return nil, err
	}
	return d, nil
}

// await waits until the command has begun, and returns the session's id. Signals end the preparation.
func (d *detaching) await(ctx context.Context) (id string, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	line := make(chan string, 1)
	go func() { // ends with the process
		text, _ := bufio.NewReader(d.socket).ReadString('\n') // its end: the command has not begun
		line <- text
	}()
	for {
		select {
		case text := <-line:
			if id, ok := strings.CutPrefix(strings.TrimSpace(text), begunWord); ok {
				return id, d.cmd.Process.Release()
			}
			return "", d.failed(d.cmd.Wait())
		case sig := <-signals:
			_ = d.cmd.Process.Signal(sig)
		case <-ctx.Done():
			_ = d.cmd.Process.Signal(syscall.SIGTERM)
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// failed returns the end of a process whose command has not begun: it has printed why.
func (d *detaching) failed(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return console.Exit(exit.ExitCode())
	}
	if err == nil {
		err = errors.New("it ended")
	}
	return hint.New(fmt.Errorf("detach the session: its process: %w", err),
		"aileron session list shows what became of it")
}

// PrintDetached prints how a detached session is reached.
func (a *App) PrintDetached(id string) error {
	words := []string{"aileron session attach " + id, "aileron session logs " + id, "aileron session stop " + id}
	if a.JSON {
		return a.PrintJSON(map[string]string{"session_id": id, "attach": words[0], "logs": words[1], "stop": words[2]})
	}
	fmt.Fprintln(a.Stdout, id)
	a.Infof("aileron: session %s is detached", id)
	for i, what := range []string{"see it", "its output", "end it"} {
		a.Infof("  %-11s %s", what, words[i])
	}
	return nil
}
