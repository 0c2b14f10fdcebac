package detached

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// A detached session lives in a process of its own, which launch, sandbox run and proxy start with --detach once
// there is nothing left to ask. That process, aileron detached, runs the same command line again, in a session of
// processes of its own. What only the first one could find out, the key of the vault above all, goes through a socket
// that only the two have, and so does the report that the command has begun, or that the proxy serves. Until then the
// second process prints where the first one does, and ends if the first one does.

// Handover is what the process of a detached session gets first, as a line of JSON. The key follows.
type Handover struct {
	Size      terminal.Size // of the terminal from which it is detached
	KeyLength int           // 0: the vault is not needed
}

// handoverFile is the descriptor of the socket in the process of a detached session.
const handoverFile = 3

// begunWord begins the line by which that process reports that the command has begun. The session's id follows.
const begunWord = "begun "

// Process is the process of a detached session, seen from the one that started it.
type Process struct {
	cmd    *exec.Cmd
	socket *os.File
}

// Start runs a command line of aileron in a process of its own, and gives it what it needs.
func Start(h Handover, key []byte, args []string, stdout, stderr io.Writer) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := system.SocketPair()
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "handover"), os.NewFile(uintptr(pair[1]), "handover")
	defer theirs.Close()
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, append([]string{"detached", "--"}, args...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{handoverFile - 3: theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	d := &Process{cmd: cmd, socket: ours}
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

// Await waits until the command has begun, and returns the session's id. Signals end the preparation.
func (d *Process) Await(ctx context.Context) (id string, err error) {
	defer d.socket.Close()
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
func (d *Process) failed(err error) error {
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

// Run is what the process of a detached session has besides the others.
type Run struct {
	Terminal *Terminal
	key      []byte // of the vault; nil: none is needed
	socket   *os.File
	abandon  context.CancelFunc // ends the preparation
	alone    atomic.Bool        // the process that started this one is not needed any more
	id       string             // of the session, once its command has begun
	home     string
}

// Receive reads what the process that started this one has handed over.
func Receive() (*Run, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(handoverFile, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("there is no socket to read from")
	}
	unix.CloseOnExec(handoverFile)
	d := &Run{socket: os.NewFile(handoverFile, "handover")}
	h, key, err := ReadHandover(d.socket)
	if err != nil {
		return nil, err
	}
	d.Terminal, d.key = New(h.Size), key
	return d, nil
}

// ReadHandover reads a handover and the key, and nothing ahead: a buffer would keep a copy of the key for as long as
// the session runs, after vault lock too.
func ReadHandover(from io.Reader) (h Handover, key []byte, err error) {
	line, char := []byte(nil), make([]byte, 1)
	for len(line) < keeper.MaxKey && char[0] != '\n' {
		if _, err := io.ReadFull(from, char); err != nil {
			return h, nil, err
		}
		line = append(line, char[0])
	}
	if err := json.Unmarshal(line, &h); err != nil || h.KeyLength < 0 || h.KeyLength > keeper.MaxKey {
		return h, nil, errors.New("it handed over something else")
	}
	if h.KeyLength == 0 {
		return h, nil, nil
	}
	key = make([]byte, h.KeyLength)
	if _, err := io.ReadFull(from, key); err != nil {
		return h, nil, err
	}
	return h, key, nil
}

// Watch returns a context of the preparation, which ends when the process that started this one ends. stop ends it too.
func (d *Run) Watch(ctx context.Context) (prepare context.Context, stop context.CancelFunc) {
	prepare, d.abandon = context.WithCancel(ctx)
	go d.watchParent()
	return prepare, d.abandon
}

// watchParent ends the preparation when the process that started this one ends.
func (d *Run) watchParent() {
	_, _ = io.Copy(io.Discard, d.socket) // it sends nothing more
	if !d.alone.Load() {
		d.abandon()
	}
}

// OpenVault returns the vault of a home, unlocked with the key that was handed over; nil if there is none.
func (d *Run) OpenVault(v *vault.Vault) (*vault.Vault, error) {
	if d.key == nil {
		return nil, nil //nolint:nilnil // as documented
	}
	defer func() { clear(d.key); d.key = nil }()
	if err := v.UnlockWithKey(d.key); err != nil {
		return nil, fmt.Errorf("open the vault with the key that was handed over: %w", err)
	}
	return v, nil
}

// Begun releases the streams of the process that started this one, and sends it the id of the session, whose command
// has begun or whose proxy serves. What aileron prints from now on goes to the file messages.
func (d *Run) Begun(home, id, messages string) {
	d.home, d.id = home, id
	redirectMessages(messages)
	d.alone.Store(true)
	if _, err := fmt.Fprintln(d.socket, begunWord+d.id); err != nil {
		d.abandon() // no one knows of the session
	}
}

// redirectMessages makes a file the streams of this process. What it prints from now on is discarded if that fails.
func redirectMessages(path string) {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		if to, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return
		}
	}
	defer to.Close()
	// For IsWritten, until this process has ended. Of the null device it would be everyone's.
	if err == nil && to.Name() == path {
		_ = unix.Flock(int(to.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		_ = system.Duplicate(int(to.Fd()), fd)
	}
}

// End ends the terminal with the messages of the session. Of a command that has not begun nothing is left.
func (d *Run) End(code int) {
	clear(d.key)
	messages := ""
	if d.id != "" {
		messages = Messages(d.home, d.id)
	}
	d.Terminal.End(End{Code: code, Messages: messages})
	if d.id == "" {
		d.Terminal.Forget()
	}
	_ = d.socket.Close()
}
