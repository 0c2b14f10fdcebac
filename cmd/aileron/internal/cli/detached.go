package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// detachedRun is what the process of a detached session has besides the others.
type detachedRun struct {
	Terminal *detached.Terminal
	key      []byte // of the vault; nil: none is needed
	socket   *os.File
	abandon  context.CancelFunc // ends the preparation
	alone    atomic.Bool        // the process that started this one is not needed any more
	id       string             // of the session, once its command has begun
	Flag     string
}

// NewDetachedCommand returns the hidden command that is the process of a detached session, see [app.detach]. Its
// arguments are a command line with --detach.
func NewDetachedCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:    "detached -- ARG…",
		Short:  "Run a session in a process of its own",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return a.runDetached(cmd.Context(), args) },
	}
}

func (a *App) runDetached(ctx context.Context, args []string) error {
	if a.Detached != nil {
		return failure.Usagef("detached is started by aileron itself")
	}
	d, err := receiveHandover()
	if err != nil {
		return failure.Usagef("detached is started by aileron itself: %v", err)
	}
	// Its messages go to streams of the other process until the command has begun. Without a reader they are lost, but
	// this process must end as it should.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	ctx, d.abandon = context.WithCancel(ctx)
	defer d.abandon()
	go d.watchParent()
	a.Detached = d
	root := a.Root(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code := a.ExitCode(withUsage(cmd, err))
	clear(d.key)
	d.end(code)
	return console.Exit(code)
}

// receiveHandover reads what the process that started this one has handed over.
func receiveHandover() (*detachedRun, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(handoverFile, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("there is no socket to read from")
	}
	unix.CloseOnExec(handoverFile)
	d := &detachedRun{socket: os.NewFile(handoverFile, "handover")}
	h, key, err := ReadHandover(d.socket)
	if err != nil {
		return nil, err
	}
	d.Terminal, d.key = detached.New(h.Size), key
	return d, nil
}

// ReadHandover reads a handover and the key, and nothing ahead: a buffer would keep a copy of the key for as long as
// the session runs, after vault lock too.
func ReadHandover(from io.Reader) (h handover, key []byte, err error) {
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

// watchParent ends the preparation when the process that started this one ends.
func (d *detachedRun) watchParent() {
	_, _ = io.Copy(io.Discard, d.socket) // it sends nothing more
	if !d.alone.Load() {
		d.abandon()
	}
}

// OpenVault returns the vault of a home, unlocked with the key that was handed over; nil if there is none.
func (d *detachedRun) OpenVault(v *vault.Vault) (*vault.Vault, error) {
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
func (d *detachedRun) Begun(home, id, messages string) {
	d.Flag, d.id = home, id
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
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		_ = unix.Dup3(int(to.Fd()), fd, 0)
	}
}

// end ends the terminal with the messages of the session. Of a command that has not begun nothing is left.
func (d *detachedRun) end(code int) {
	messages := ""
	if d.id != "" {
		messages = detached.Messages(d.Flag, d.id)
	}
	d.Terminal.End(detached.End{Code: code, Messages: messages})
	if d.id == "" {
		d.Terminal.Forget()
	}
	_ = d.socket.Close()
}
