package vault

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// keeperReady is the line by which the process that holds the key reports that it can be reached.
const keeperReady = "ready"

type vaultKeepOptions struct {
	until     string
	recipient string
}

// newVaultKeepCommand returns the hidden command that vault unlock --for starts: it reads the vault's key from standard
// input, and holds it as [keeper.Serve] does. As every process of aileron it is not dumpable: see [protectProcess].
func newVaultKeepCommand(a *cli.App) *cobra.Command {
	opts := &vaultKeepOptions{}
	cmd := &cobra.Command{
		Use:    "keep",
		Short:  "Hold the key of the vault",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE:   func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.until, "until", "", "when the key is forgotten, as RFC 3339")
	f.StringVar(&opts.recipient, "recipient", "", "public key of the vault")
	return cmd
}

func (o *vaultKeepOptions) run(ctx context.Context, a *cli.App) error {
	until, err := time.Parse(time.RFC3339Nano, o.until)
	if err != nil {
		return failure.Usagef("--until is not a time of RFC 3339")
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	v := a.VaultAt(home)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	key, err := keeper.ReadKey(a.Stdin)
	if err != nil {
		return err
	}
	return keeper.Serve(ctx, key, keeper.Options{
		Home: home, Until: until,
		Current: func() bool {
			locked, err := v.LockState()
			recipient, readErr := v.Recipient()
			return err == nil && !locked && readErr == nil && recipient == o.recipient
		},
		Ready: func() { fmt.Fprintln(a.Stdout, keeperReady) },
	})
}

// keepKey starts a process that holds the key of v for a time, in the place of one that does so already.
func keepKey(ctx context.Context, a *cli.App, v *vault.Vault, until time.Time) error {
	fail := func(err error) error { return fmt.Errorf("keep the vault unlocked: %w", err) }
	home, err := a.Home()
	if err != nil {
		return err
	}
	key, err := v.Key()
	if err != nil {
		return fail(err)
	}
	defer clear(key)
	recipient, err := v.Recipient()
	if err != nil {
		return fail(err)
	}
	if err := keeper.End(ctx, home); err != nil {
		return fail(err)
	}
	binary, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, "--home", home, "vault", "keep", "--until", until.UTC().Format(time.RFC3339Nano),
		"--recipient", recipient)
	cmd.Dir = "/" // no file system stays busy
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR"), "HOME=" + os.Getenv("HOME")}
	if err := startKeeper(cmd, key); err != nil {
		return hint.New(fail(err), "without --for, every command finds the passphrase for itself")
	}
	return nil
}

// startKeeper starts the process, gives it the key, and returns once other processes can reach it.
func startKeeper(cmd *exec.Cmd, key []byte) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = in.Write(key)
	err = errors.Join(err, in.Close())
	line, _ := bufio.NewReader(out).ReadString('\n') // the end of the output: it failed
	if err == nil && strings.TrimSpace(line) == keeperReady {
		return cmd.Process.Release()
	}
	err = errors.Join(err, cmd.Wait())
	if text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "aileron: "); text != "" {
		return errors.New(text)
	}
	return cmp.Or(err, errors.New("the process that was to hold the key ended"))
}

// endKeeper ends the process that holds the vault's key, if there is one.
func endKeeper(ctx context.Context, a *cli.App) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	return keeper.End(ctx, home)
}
