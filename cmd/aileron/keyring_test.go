package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// busConfig is a session bus that starts no service: a prompt of the keyring fails, and never appears on a desktop.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen>
<policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

// secretService is a real keyring on a bus of its own.
type secretService struct {
	t      *testing.T
	bus    string // its address
	daemon *exec.Cmd
}

// newSecretService starts a keyring, unlocked and empty, and makes the owner's programs find it.
func newSecretService(t *testing.T, o owner) *secretService {
	t.Helper()
	for _, name := range []string{"dbus-daemon", "dbus-send", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s; scripts/prepare --tests installs it", name)
		}
	}
	dir := must.ShortDir(t)
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	must.Do(t, os.WriteFile(config, []byte(fmt.Sprintf(busConfig, socket)), 0o600))
	k := &secretService{t: t, bus: "unix:path=" + socket}
	k.start("", "dbus-daemon", "--nofork", "--print-address", "--config-file="+config)
	k.daemon = k.start("the login password", "gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets",
		"--control-directory="+dir)
	k.awaitUnlocked()
	o.env["DBUS_SESSION_BUS_ADDRESS"], o.env[keyringWaitEnv] = k.bus, patience.String()
	must.Do(t, os.Chmod(o.Flag, 0o700)) // as doctor wants it
	return k
}

// start starts a daemon that writes a line when it is ready, and ends it after the test.
func (k *secretService) start(input, name string, args ...string) *exec.Cmd {
	k.t.Helper()
	cmd := exec.Command(name, args...)
	home := k.t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_RUNTIME_DIR=" + home,
		"DBUS_SESSION_BUS_ADDRESS=" + k.bus}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.StdoutPipe()
	must.Do(k.t, err)
	must.Do(k.t, cmd.Start())
	k.t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		k.t.Fatalf("%s does not start: %v", name, err)
	}
	return cmd
}

// call calls a method of the keyring.
func (k *secretService) call(path, method string, args ...string) (string, error) {
	cmd := exec.CommandContext(k.t.Context(), "dbus-send", append([]string{"--bus=" + k.bus, "--print-reply",
		"--dest=org.freedesktop.secrets", path, method}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const loginKeyring = "/org/freedesktop/secrets/collection/login"

// awaitUnlocked waits for the keyring to be on the bus: its daemon is ready before.
func (k *secretService) awaitUnlocked() {
	k.t.Helper()
	for start := time.Now(); ; {
		out, err := k.call(loginKeyring, "org.freedesktop.DBus.Properties.Get",
			"string:org.freedesktop.Secret.Collection", "string:Locked")
		if err == nil && strings.Contains(out, "boolean false") {
			return
		}
		if time.Since(start) > patience {
			k.t.Fatalf("the keyring does not unlock: %v: %s", err, out)
		}
	}
}

func (k *secretService) lock() {
	k.t.Helper()
	out, err := k.call("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", "array:objpath:"+loginKeyring)
	if err != nil {
		k.t.Fatalf("lock the keyring: %v: %s", err, out)
	}
}

// says runs a program that ends with code, or with any if it is less than 0, and fails unless its output has each text.
func (o owner) says(code int, texts []string, args ...string) {
	o.t.Helper()
	out, err := o.program(args...).CombinedOutput()
	ended := 0
	if exit, ok := err.(*exec.ExitError); ok {
		ended, err = exit.ExitCode(), nil
	}
	must.Do(o.t, err)
	for _, text := range texts {
		if !strings.Contains(string(out), text) {
			o.t.Errorf("aileron %q does not say %q: %s", args, text, out)
		}
	}
	if code >= 0 && ended != code {
		o.t.Errorf("aileron %q ends with %d, want %d: %s", args, ended, code, out)
	}
}

// The real Secret Service: setup asks for no passphrase and makes one up, and every later command finds it, until it is
// removed.
func TestAKeyringThatRespondsKeepsThePassphrase(t *testing.T) {
	o := newOwner(t)
	o.env = map[string]string{}
	newSecretService(t, o)
	o.says(0, []string{"the OS keyring has its passphrase"}, "setup", "claude", "--yes", "--sandbox=off", "--key-file",
		o.file("key", anthropicKey))
	o.says(0, []string{"opens     with the passphrase in the OS keyring"}, "vault", "status")
	o.says(0, []string{`"keyring":"holds"`, `"opens":"keyring"`}, "vault", "status", "--json")
	o.says(-1, []string{"it holds the vault's passphrase"}, "doctor") // an engine may be too busy to respond
	o.says(0, []string{"vault locked"}, "vault", "lock")
	o.says(0, []string{"vault unlocked"}, "vault", "unlock")
	o.says(0, []string{"passphrase changed"}, "vault", "passwd", "--new-passphrase-file", o.file("new", testPassphrase))
	o.says(0, []string{"vault unlocked"}, "vault", "unlock") // with the new one
	o.holds(map[string]string{anthropicBinding: anthropicKey})
	o.says(0, []string{"vault locked"}, "vault", "lock", "--keyring")
	o.says(0, []string{`"keyring":"empty"`, `"opens":"passphrase"`}, "vault", "status", "--json")
	o.says(1, []string{"none was given"}, "vault", "unlock")
	o.says(0, nil, "vault", "unlock", "--keyring", "--passphrase-file", o.file("again", testPassphrase))
	o.says(0, []string{`"keyring":"holds"`}, "vault", "status", "--json")
}

// A keyring that is locked refuses, and one that hangs is not waited for. Both are named, and a passphrase that is
// given works all the same.
func TestAKeyringThatRefusesOrHangsIsNamed(t *testing.T) {
	o := newOwner(t)
	k := newSecretService(t, o)
	o.says(0, nil, "vault", "init", "--keyring")
	delete(o.env, "AILERON_VAULT_PASSPHRASE")
	o.says(0, nil, "vault", "unlock")
	refuses := func(why string) {
		t.Helper()
		o.says(1, []string{"find the passphrase: none was given", why}, "vault", "unlock")
		o.says(0, []string{why, "every command asks for"}, "vault", "status")
		o.says(0, []string{`"keyring":"unavailable"`}, "vault", "status", "--json")
		o.says(-1, []string{"warn  keyring", why}, "doctor") // an engine may be too busy to respond
		o.says(0, []string{"vault unlocked"}, "vault", "unlock", "--passphrase-file", o.file("p", testPassphrase))
		o.says(1, []string{"store the passphrase in the OS keyring", why, "aileron vault unlock --keyring"}, "vault",
			"unlock",
			"--keyring", "--passphrase-file", o.file("p", testPassphrase))
		o.says(1, []string{"remove the passphrase from the OS keyring", why}, "vault", "lock", "--keyring")
		o.says(0, nil, "vault", "unlock", "--passphrase-file", o.file("p", testPassphrase))
	}
	k.lock()
	refuses("the OS keyring is locked")
	must.Do(t, k.daemon.Process.Signal(unix.SIGSTOP))
	delete(o.env, keyringWaitEnv)
	refuses("the OS keyring does not respond within 2s")
}

// A bus without a keyring is as good as none.
func TestABusWithoutAKeyringIsNoObstacle(t *testing.T) {
	o := newOwner(t)
	k := newSecretService(t, o)
	must.Do(t, k.daemon.Process.Kill())
	_ = k.daemon.Wait()
	o.says(0, nil, "vault", "init")
	o.says(0, []string{`"keyring":"none"`}, "vault", "status", "--json")
	o.says(0, []string{"vault locked"}, "vault", "lock", "--keyring")
}
