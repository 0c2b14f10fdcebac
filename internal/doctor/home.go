package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// hasHome reports whether aileron's directory exists.
func (d *Doctor) hasHome() bool {
	home, err := d.HomePath()
	if err != nil {
		return false
	}
	info, err := os.Stat(home)
	return err == nil && info.IsDir()
}

// checkHome checks aileron's directory: who may read it, and its settings.
func (d *Doctor) checkHome(context.Context) {
	home, err := d.HomePath()
	if err != nil {
		d.add(failed("home", err, ""))
		return
	}
	info, err := os.Stat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(warning("home", "aileron setup, or any command that changes it, makes it", "%s does not exist yet", home))
		return
	case err != nil:
		d.add(failed("home", err, "check the permissions of the directories above it"))
		return
	case !info.IsDir():
		d.add(failed("home", fmt.Errorf("%s is no directory", home), "move it away, or name another home with --home"))
		return
	}
	if err := d.homeRights(home, info); err != nil {
		d.add(failed("home", err, "chmod 700 "+home))
	} else {
		d.add(healthy("home", "%s", home))
	}
	conf, err := config.Read(home)
	if err != nil {
		d.add(failed("settings", err, "correct config.toml"))
		return
	}
	d.add(healthy("settings", "config.toml is valid, or there is none"))
	d.checkDecider(conf.Approval.Decider)
}

// checkDecider checks the program that is asked about approvals, without asking it.
func (d *Doctor) checkDecider(by config.Decider) {
	if !by.IsSet() {
		return
	}
	if err := (&approvals.Decider{Socket: by.Socket, Command: by.Command}).Check(); err != nil {
		d.add(failed("decider", fmt.Errorf("it decides nothing, and you are asked: %w", err), "correct config.toml"))
		return
	}
	d.add(healthy("decider", "%s", cmp.Or(by.Socket, strings.Join(by.Command, " "))))
}

// homeRights reports what is wrong with the permissions of the home.
func (d *Doctor) homeRights(home string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) != os.Geteuid():
		return hint.New(fmt.Errorf("%s belongs to user %d, and aileron runs as user %d", home, stat.Uid, os.Geteuid()),
			"run aileron as the owner, or give the home back with: chown -R %d %s", os.Geteuid(), home)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users of this host may look into %s (mode %v)", home, info.Mode().Perm())
	case unix.Access(home, unix.W_OK) != nil:
		return fmt.Errorf("%s cannot be written to", home)
	}
	return nil
}

// The free space below which the disk is a warning and a failure. At the second the audit log soon cannot be written,
// and then no request is sent.
const (
	lowDisk  = 2 << 30
	fullDisk = 100 << 20
)

func (d *Doctor) checkDisk(context.Context) {
	home, err := d.HomePath()
	if err != nil {
		return
	}
	for _, at := range []string{home, os.TempDir()} {
		for _, err := os.Stat(at); err != nil && filepath.Dir(at) != at; _, err = os.Stat(at) {
			at = filepath.Dir(at) // the disk on which it would be
		}
		free, err := system.FreeSpace(at)
		if err != nil {
			continue
		}
		const fix = "free space there; aileron sandbox prune removes what killed sessions left"
		switch {
		case free < fullDisk:
			d.add(failed("disk", fmt.Errorf("%s has %d MiB left; the audit log needs room, or no request is sent",
				at, free>>20), fix))
		case free < lowDisk:
			d.add(warning("disk", fix, "%s has %d MiB left; an image takes about 1 GiB", at, free>>20))
		default:
			d.add(healthy("disk", "%s has %d GiB left", at, free>>30))
		}
	}
}

// checkClock compares the clock with the last audit row. Certificates of a session are valid for a day.
func (d *Doctor) checkClock(ctx context.Context) {
	now := time.Now()
	l, err := d.AuditReader()
	if err != nil || l == nil {
		d.add(healthy("clock", "%s", now.Format(time.RFC3339)))
		return
	}
	defer l.Close()
	last := time.Time{}
	if rows, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true}); err == nil && len(rows) == 1 {
		last = rows[0].TS
	}
	if last.After(now.Add(time.Minute)) {
		d.add(failed("clock", fmt.Errorf("the clock shows %s, and the audit log ends at %s: it was set back",
			now.Format(time.RFC3339), last.Format(time.RFC3339)),
			"set the clock; running sessions then need to be started anew"))
		return
	}
	d.add(healthy("clock", "%s", now.Format(time.RFC3339)))
}

func (d *Doctor) checkKeyring(context.Context) {
	home, err := d.HomePath()
	if err != nil {
		return // checkHome has it
	}
	switch _, err := vault.FromKeyring(home); {
	case err == nil:
		d.add(healthy("keyring", "it holds the vault's passphrase"))
	case unlock.KeyringFails(err):
		d.add(warning("keyring", "unlock it, such as by a login at the desktop; or use aileron vault unlock --for 8h", "%v",
			err))
	case errors.Is(err, vault.ErrNoKeyring):
		d.add(healthy("keyring", "this host has none: sessions ask for the passphrase, or use what aileron vault unlock "+
			"--for keeps"))
	default:
		d.add(healthy("keyring", "it does not hold the vault's passphrase: sessions ask for it, "+
			"or use what aileron vault unlock --for keeps"))
	}
}

func (d *Doctor) checkVault(ctx context.Context) {
	v, err := d.VaultOf()
	if err != nil {
		d.add(failed("vault", err, ""))
		return
	}
	bindings, err := v.Bindings()
	if err == nil {
		_, err = v.Digest(vault.Identity) // it is read as an unlock does
	}
	held, _ := d.Unlocker.KeptUntil(ctx)
	switch {
	case !v.Initialised():
		d.add(warning("vault", "aileron setup, or: aileron vault init", "there is none yet"))
	case err != nil:
		d.add(failed("vault", err, "check the permissions of the vault's directory"))
	case v.LockedForAll():
		d.add(warning("vault", "aileron vault unlock", "it is locked: requests that need a credential are denied"))
	case !held.Until.IsZero():
		d.add(healthy("vault", "%s, unlocked until %s", hint.Plural(len(bindings), "binding"),
			held.Until.Local().Format(time.DateTime)))
	default:
		d.add(healthy("vault", "%s", hint.Plural(len(bindings), "binding")))
	}
	d.checkLogins(bindings)
}

// checkLogins warns of logins that have ended, and of those whose tokens expire and are not renewed.
func (d *Doctor) checkLogins(bindings []vault.Binding) {
	for _, b := range bindings {
		if b.Login != "" && (b.Renewal == oauth.LoginNeeded || b.Renewal != oauth.Automatic && !b.Expires.IsZero()) {
			d.add(warning("login", "aileron binding rebind "+b.Name, "%s is %s", b.Name, oauth.Describe(b)))
		}
	}
}

// checkLog verifies the chain of the audit log, and what waits beside it.
func (d *Doctor) checkLog(ctx context.Context) {
	l, err := d.AuditReader()
	switch {
	case err != nil:
		d.add(failed("audit log", err, "aileron audit verify"))
		return
	case l == nil:
		d.add(healthy("audit log", "there is none yet; it begins with the first session"))
		return
	}
	defer l.Close()
	report, err := l.Verify(ctx)
	switch {
	case err != nil:
		d.add(failed("audit log", auditlog.Hint(err), "aileron audit verify"))
	case !report.OK:
		d.add(failed("audit log", fmt.Errorf("it does not verify: %s", review.FindingText(report.Findings[0])),
			"aileron audit verify"))
	case report.Spilled > 0:
		d.add(warning("audit log", "free space on the disk, then start any session",
			"%d rows wait in journals: the log could not be written", report.Spilled))
	default:
		d.add(healthy("audit log", "%s, chain and heads verified", hint.Plural(int(report.Rows), "row")))
	}
}

// checkLimits checks what this process may use.
func (d *Doctor) checkLimits(context.Context) {
	const fix = "raise the limit of open files (ulimit -n), for all logins in /etc/security/limits.conf"
	files := launch.OpenFileLimit()
	switch err := launch.CheckOpenFiles(files); {
	case err != nil:
		d.add(failed("limits", err, fix))
	case files < launch.FewFiles:
		d.add(warning("limits", fix, "%d files may be open; a session then serves few connections at once", files))
	default:
		d.add(healthy("limits", "%d files may be open", files))
	}
	var locked unix.Rlimit
	const page = 4096
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked) == nil && locked.Max < page {
		d.add(warning("limits", "raise the limit of locked memory (ulimit -l 64)",
			"%d bytes may be locked; aileron vault unlock --for needs %d", locked.Max, page))
	}
}
