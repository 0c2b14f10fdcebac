package console

import (
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
	"github.com/ALRubinger/aileron/internal/system"
)

// ErrInputEnded is returned by a prompt that got no line.
var ErrInputEnded = errors.New("the input ended")

// PromptSecret asks for a secret on the terminal without echoing it, and with confirm twice. A signal restores the
// echo and ends the command.
func (c *Console) PromptSecret(ctx context.Context, what string, confirm bool) ([]byte, error) {
	first, err := c.ReadUnseen(ctx, what)
	if err != nil || !confirm {
		return first, err
	}
	second, err := c.ReadUnseen(ctx, what+", again")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, hint.New(fmt.Errorf("ask for the %s: the two entries differ", what), "run the command again")
	}
	return first, nil
}

func (c *Console) ReadUnseen(ctx context.Context, what string) ([]byte, error) {
	c.Asked = true
	fail := func(err error) error { return fmt.Errorf("ask for the %s: %w", what, err) }
	in, ok := c.Stdin.(*os.File)
	if !ok {
		return nil, fail(errors.New("there is no terminal"))
	}
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fail(err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	line, err := Ask(ctx, func() error {
		// Before the question: the answer of a fast hand, or of a program, would be on the screen.
		if err := stopEcho(fd); err != nil {
			return err
		}
		flushTyped(in)
		fmt.Fprint(c.Stderr, c.message(what+":")+" ")
		return nil
	}, func() ([]byte, error) { return ReadTyped(in) }) // not term.ReadPassword, which sets the terminal, perhaps too late
	fmt.Fprintln(c.Stderr)
	switch exit := (ExitError{}); {
	case errors.As(err, &exit):
		return nil, exit
	case errors.Is(err, io.EOF):
		return nil, fail(ErrInputEnded)
	case err != nil:
		return nil, fail(err)
	}
	return line, nil
}

// Ask shows a question and returns what read reads. A signal ends the wait with an [ExitError]: the code is that of a
// program that the signal ended.
func Ask(ctx context.Context, show func() error, read func() ([]byte, error)) ([]byte, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := show(); err != nil {
		return nil, err
	}
	type input struct {
		line []byte
		err  error
	}
	inputs := make(chan input, 1)
	go func() { // ends with the input, or with the process after a signal
		line, err := read()
		inputs <- input{line, err}
	}()
	select {
	case got := <-inputs:
		return got.line, got.err
	case sig := <-signals:
		return nil, signalled(sig)
	case <-ctx.Done():
		signal.Stop(signals) // after this a signal that ended ctx is in the channel too
		select {
		case sig := <-signals:
			return nil, signalled(sig)
		default:
			return nil, signalled(syscall.SIGINT)
		}
	}
}

// signalled returns the exit code of a program that a signal ended.
func signalled(sig os.Signal) ExitError {
	n, _ := sig.(syscall.Signal)
	return ExitError{128 + int(n)}
}

// maxTyped is the most that a person types into one prompt.
const maxTyped = 64 << 10

// ReadTyped reads a line, without its end. It takes no byte more: the next prompt reads that.
func ReadTyped(in io.Reader) (line []byte, err error) {
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
	now, err := system.ReadTermios(fd)
	if err != nil {
		return err
	}
	now.Lflag = now.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG
	now.Iflag |= unix.ICRNL
	return system.WriteTermios(fd, now)
}

// PromptLine asks for a line on the terminal.
func (c *Console) PromptLine(what string) (string, error) {
	c.Asked = true
	line, err := Ask(context.Background(), func() error { // a signal ends it, even where the caller's context takes it
		if in, ok := c.Stdin.(*os.File); ok {
			flushTyped(in)
		}
		fmt.Fprint(c.Stderr, c.message(what)+" ")
		return nil
	}, func() ([]byte, error) { return ReadTyped(c.Stdin) })
	if err != nil {
		fmt.Fprintln(c.Stderr)
	}
	if exit := (ExitError{}); errors.As(err, &exit) {
		return "", exit
	}
	if err != nil {
		return "", fmt.Errorf("ask %q: %w", what, ErrInputEnded)
	}
	return strings.TrimSpace(string(line)), nil
}

// Agreed asks a question and reports whether the answer is yes.
func (c *Console) Agreed(question string) (bool, error) {
	answer, err := c.PromptLine(question + " [y/N]")
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// DiscardTyped discards what a person has typed and no prompt has read: the next reader of the terminal is their
// shell, which would print it, execute it, and keep it in its history. It may be a passphrase.
func (c *Console) DiscardTyped() {
	if f, ok := c.Stdin.(*os.File); ok && c.Interactive() {
		flushTyped(f)
	}
}

// flushTyped discards what was typed and not read yet, if the file is a terminal. Before a question: the second line of
// what was pasted at the last one is not an answer to it.
func flushTyped(f *os.File) { system.FlushInput(int(f.Fd())) }
