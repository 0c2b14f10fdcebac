package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// errInputEnded is returned by a prompt that got no line.
var errInputEnded = errors.New("the input ended")

// promptSecret asks for a secret on the terminal without echoing it, and with confirm twice. A signal restores the
// echo and ends the command.
func (a *app) promptSecret(ctx context.Context, what string, confirm bool) ([]byte, error) {
	first, err := a.readUnseen(ctx, what)
	if err != nil || !confirm {
		return first, err
	}
	second, err := a.readUnseen(ctx, what+", again")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, hint.New(fmt.Errorf("ask for the %s: the two entries differ", what), "run the command again")
	}
	return first, nil
}

func (a *app) readUnseen(ctx context.Context, what string) ([]byte, error) {
	a.asked = true
	fail := func(err error) error { return fmt.Errorf("ask for the %s: %w", what, err) }
	in, ok := a.stdin.(*os.File)
	if !ok {
		return nil, fail(errors.New("there is no terminal"))
	}
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fail(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Before the question: the answer of a fast hand, or of a program, would be on the screen.
	if err := stopEcho(fd); err != nil {
		return nil, fail(err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	fmt.Fprint(a.stderr, termsafe.Line(what)+": ")
	type input struct {
		line []byte
		err  error
	}
	inputs := make(chan input, 1)
	go func() { // ends with the input, or with the process after a signal
		// Not term.ReadPassword: it sets the terminal itself, and so perhaps after it was restored.
		line, err := readTyped(in)
		inputs <- input{line, err}
	}()
	select {
	case got := <-inputs:
		fmt.Fprintln(a.stderr)
		if errors.Is(got.err, io.EOF) {
			return nil, fail(errInputEnded)
		}
		if got.err != nil {
			return nil, fail(got.err)
		}
		return got.line, nil
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return nil, exitError{128 + int(syscall.SIGINT)}
	}
}

// maxTyped is the most that a person types into one prompt.
const maxTyped = 64 << 10

// readTyped reads a line, without its end. It takes no byte more: the next prompt reads that.
func readTyped(in io.Reader) (line []byte, err error) {
	var b [1]byte
	for len(line) < maxTyped {
		n, err := in.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n', err == io.EOF && len(line) > 0:
			return line, nil
		case n == 1:
			line = append(line, b[0])
		case err != nil:
			return nil, err
		}
	}
	return nil, fmt.Errorf("the line has more than %d bytes", maxTyped)
}

// stopEcho keeps a terminal from echoing what is typed, and makes it deliver lines and signals.
func stopEcho(fd int) error {
	now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	now.Lflag = now.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG
	now.Iflag |= unix.ICRNL
	return unix.IoctlSetTermios(fd, unix.TCSETS, now)
}

// promptLine asks for a line on the terminal.
func (a *app) promptLine(what string) (string, error) {
	a.asked = true
	fmt.Fprint(a.stderr, termsafe.Line(what)+" ")
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && line == "" {
		return "", fmt.Errorf("ask %q: %w", what, errInputEnded)
	}
	return strings.TrimSpace(line), nil
}

// discardTyped discards what a person has typed and no prompt has read: the next reader of the terminal is their
// shell, which would print it, execute it, and keep it in its history. It may be a passphrase.
func (a *app) discardTyped() {
	if f, ok := a.stdin.(*os.File); ok && a.interactive() {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	}
}
