// Package command obtains a credential from a program: the command line of a password manager, of a vault or of a
// cloud.
//
//	c := command.Command{"op", "read", "op://Private/tracker/token"}
//	value, err := c.Run(ctx, nil)
//
// A [Source] runs the program of one binding for all exchanges of a session, again when what it printed has expired or
// is refused. What a program prints is a secret: no error has a byte of it, nor of what it prints on standard error.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/vault"
)

const (
	// maxOutput is how many bytes a program may print.
	maxOutput = 64 << 10
	// runTime bounds one run. A password manager may wait for a person who unlocks it.
	runTime = time.Minute
)

// Command is a program and its arguments.
type Command []string

// Value is what a program has printed.
type Value struct {
	Secret  vault.Secret
	Expires time.Time // zero: it does not say
}

// sealed is a command as a grant of package vault.
type sealed struct {
	Command Command `json:"command"`
}

// Of returns the command of a credential. It reports false for a credential that comes from no program.
func Of(c vault.Credential) (Command, bool) {
	var s sealed
	if c.Grant.IsZero() || json.Unmarshal([]byte(c.Grant.Reveal()), &s) != nil || len(s.Command) == 0 {
		return nil, false
	}
	return s.Command, true
}

// placeholder is the secret of a sealed credential, which needs one. It is never sent: it says so to a release that
// knows of no commands.
const placeholder = "the-secret-is-what-a-program-prints"

// Renewal is the state of the renewal of a binding whose credential a program prints, in [vault.Binding].Renewal.
const Renewal = "command"

// Credential returns what is sealed of a binding. A command has only printable ASCII, as secrets do: it may name one.
func (c Command) Credential() (out vault.Credential, err error) {
	raw, err := json.Marshal(sealed{c})
	if err != nil {
		return out, err
	}
	if out.Grant, err = vault.NewSecret(raw); err != nil {
		return out, errors.New("the command has a character that is not printable ASCII, or is too long")
	}
	out.Secret, err = vault.NewSecret([]byte(placeholder))
	return out, err
}

// Start starts a program. Nil is [exec.Cmd.Start].
type Start func(*exec.Cmd) error

// Run runs the program in the directory / and returns what it printed. The program and what it started end with ctx,
// after a minute, or when it prints too much.
func (c Command) Run(ctx context.Context, start Start) (Value, error) {
	if start == nil {
		start = (*exec.Cmd).Start
	}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	cmd := exec.Command(c[0], c[1:]...) //nolint:gosec,noctx // the owner's own; its whole group ends with ctx
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = "/" // not the project, in which git, or an interpreter, would find what an agent wrote
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = start(cmd)
	}
	if err != nil {
		return Value{}, fmt.Errorf("run %s: %w", c[0], startError(err))
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stop := context.AfterFunc(ctx, func() {
		kill()
		_ = out.Close() // of a descendant with a group of its own
	})
	printed, err := io.ReadAll(io.LimitReader(out, maxOutput+1))
	if len(printed) > maxOutput {
		kill()
	}
	ended := cmd.Wait()
	stop()
	switch {
	case ctx.Err() != nil:
		return Value{}, fmt.Errorf("run %s: %w", c[0], timeError(ctx))
	case len(printed) > maxOutput:
		return Value{}, fmt.Errorf("run %s: it printed more than %d bytes", c[0], maxOutput)
	case ended != nil:
		return Value{}, fmt.Errorf("run %s: %w", c[0], ended) // its exit code, or its signal
	case err != nil:
		return Value{}, fmt.Errorf("run %s: %w", c[0], err)
	}
	v, err := parse(printed, time.Now())
	if err != nil {
		return Value{}, fmt.Errorf("run %s: %w", c[0], err)
	}
	return v, nil
}

// startError returns the reason in err alone.
func startError(err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func timeError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it did not end within %v", runTime)
	}
	return ctx.Err()
}

// output is JSON that a program may print in the place of the bare secret: aileron's own form, that of kubectl's
// credential plugins, and those of gcloud and az.
type output struct {
	Value       string `json:"value"`
	Token       string `json:"token"`
	AccessToken string `json:"access_token"`
	AzureToken  string `json:"accessToken"`

	ExpiresAt  time.Time `json:"expires_at"`
	Expiration time.Time `json:"expirationTimestamp"`
	ExpiresIn  int64     `json:"expires_in"` // seconds
	ExpiresOn  int64     `json:"expires_on"` // Unix time

	Status *output `json:"status"` // of an ExecCredential
}

// parse returns the value in what a program printed: the secret alone, or an object of JSON.
func parse(printed []byte, now time.Time) (v Value, err error) {
	text := bytes.TrimSpace(printed)
	if !bytes.HasPrefix(text, []byte("{")) {
		v.Secret, err = vault.NewSecret(printed)
		return v, err
	}
	var o output
	if json.Unmarshal(text, &o) != nil {
		return v, errors.New(`it printed JSON that is not {"value": "…", "expires_at": "RFC 3339"}`)
	}
	if o.Status != nil {
		o = *o.Status
	}
	var values []string
	for _, s := range []string{o.Value, o.Token, o.AccessToken, o.AzureToken} {
		if s != "" {
			values = append(values, s)
		}
	}
	if len(values) != 1 {
		return v, errors.New(`it printed JSON without one "value"`)
	}
	if v.Secret, err = vault.NewSecret([]byte(values[0])); err != nil {
		return v, err
	}
	switch {
	case !o.ExpiresAt.IsZero():
		v.Expires = o.ExpiresAt
	case !o.Expiration.IsZero():
		v.Expires = o.Expiration
	case o.ExpiresIn > 0:
		v.Expires = now.Add(time.Duration(min(o.ExpiresIn, maxLife)) * time.Second)
	case o.ExpiresOn > 0:
		v.Expires = time.Unix(o.ExpiresOn, 0)
	}
	if !v.Expires.IsZero() && !v.Expires.After(now) {
		return v, errors.New("what it printed has expired")
	}
	return v, nil
}

// maxLife is how many seconds a credential lives at most: a century.
const maxLife = 100 * 365 * 24 * 3600

// String returns the program without its arguments, of which one may be a secret.
func (c Command) String() string {
	if len(c) == 0 {
		return ""
	}
	return strings.TrimSpace(c[0])
}
