package unlock

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// KeeperReady is the line by which the process that holds the key reports that it can be reached.
const KeeperReady = "ready"

// KeepKey starts a process that holds the key of v for a time, in the place of one that does so already.
func (u *Unlocker) KeepKey(ctx context.Context, v *vault.Vault, until time.Time) error {
	fail := func(err error) error { return fmt.Errorf("keep the vault unlocked: %w", err) }
	home, err := u.Home()
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
	if err == nil && strings.TrimSpace(line) == KeeperReady {
		return cmd.Process.Release()
	}
	err = errors.Join(err, cmd.Wait())
	if text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "aileron: "); text != "" {
		return errors.New(text)
	}
	return cmp.Or(err, errors.New("the process that was to hold the key ended"))
}

// EndKeeper ends the process that holds the vault's key, if there is one.
func (u *Unlocker) EndKeeper(ctx context.Context) error {
	home, err := u.Home()
	if err != nil {
		return err
	}
	return keeper.End(ctx, home)
}

// Opening is how a command without flags opens the vault.
type Opening struct {
	With    string // environment, held, keyring or passphrase
	Keyring string // holds, empty, none or unavailable
	Text    string
}

// HowVaultOpens returns what a command without flags would open the vault with, in the order of [Unlocker.OpenVault].
func (u *Unlocker) HowVaultOpens(v *vault.Vault, held keeper.State) (o Opening) {
	home, err := u.Home()
	if err == nil && v.Initialised() {
		_, err = vault.FromKeyring(home)
	}
	switch {
	case err == nil:
		o.Keyring = "holds"
	case errors.Is(err, vault.ErrNoKeyring):
		o.Keyring = "none"
	case errors.Is(err, vault.ErrKeyringEmpty):
		o.Keyring = "empty"
	default:
		o.Keyring = "unavailable"
	}
	switch {
	case u.Getenv(string(FromEnv)) != "":
		o.With, o.Text = "environment", "with the passphrase in "+string(FromEnv)
	case !held.Until.IsZero():
		o.With, o.Text = "held", "with the key that a process holds"
	case o.Keyring == "holds":
		o.With, o.Text = "keyring", "with the passphrase in the OS keyring"
	default:
		o.With, o.Text = "passphrase", "with the passphrase, which every command asks for; once for the day: "+
			"aileron vault unlock --for 8h"
	}
	if o.Keyring == "unavailable" {
		o.Text += fmt.Sprintf(" (%v)", err)
	}
	return o
}
