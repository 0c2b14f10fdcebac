package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/system"
)

// Conversation is several questions at a terminal, of which some ask for secrets. While it lasts the terminal echoes
// nothing but the answers to its open questions: a secret that is typed or pasted too early, or with more lines than
// it should have, is not on the screen. Nor is it an answer: what was typed before a question is discarded.
type Conversation struct {
	*Console
	in     *os.File
	before unix.Termios
}

// Converse begins a conversation. The caller ends it.
func (con *Console) Converse() (*Conversation, error) {
	in, ok := con.Stdin.(*os.File)
	if !ok {
		return nil, errors.New("ask on the terminal: there is none")
	}
	before, err := system.ReadTermios(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	c := &Conversation{Console: con, in: in, before: *before}
	c.echo(false)
	return c, nil
}

func (c *Conversation) echo(on bool) {
	now := c.before
	if !on {
		now.Lflag &^= unix.ECHO
	}
	_ = system.WriteTermios(int(c.in.Fd()), &now)
}

// End restores the terminal.
func (c *Conversation) End() { _ = system.WriteTermios(int(c.in.Fd()), &c.before) }

// line asks a question and returns the line that answers it.
func (c *Conversation) line(ctx context.Context, question string) (string, error) {
	c.Asked = true
	defer c.echo(false)
	line, err := Ask(ctx, func() error {
		flushTyped(c.in)
		c.echo(true)
		fmt.Fprint(c.Stderr, c.message(question)+" ")
		return nil
	}, func() ([]byte, error) { return ReadTyped(c.in) })
	if err != nil {
		fmt.Fprintln(c.Stderr)
	}
	if exit := (ExitError{}); errors.As(err, &exit) {
		return "", exit
	}
	if err != nil {
		return "", fmt.Errorf("ask %q: %w", question, ErrInputEnded)
	}
	return strings.TrimSpace(string(line)), nil
}

// Yes asks a question for yes or no. An empty line is fallback.
func (c *Conversation) Yes(ctx context.Context, question string, fallback bool) (bool, error) {
	return c.YesOr(ctx, question, fallback, nil)
}

// YesOr is yes with a third answer, a question mark, to which explain prints more. It is nil if there is no more.
func (c *Conversation) YesOr(ctx context.Context, question string, fallback bool, explain func()) (bool, error) {
	choice := " [y/N]"
	if fallback {
		choice = " [Y/n]"
	}
	for range MaxTries {
		answer, err := c.line(ctx, question+choice)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "":
			return fallback, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		case "?":
			if explain != nil {
				explain()
				continue
			}
		}
		c.Infof("aileron: answer with yes or no")
	}
	return false, nil
}

// Choose asks for one of a few words. An empty line is the first of them.
func (c *Conversation) Choose(ctx context.Context, what string, words []string) (string, error) {
	for range MaxTries {
		answer, err := c.line(ctx, fmt.Sprintf("%s: %s? [%s]", what, hint.Alternatives(words), words[0]))
		if err != nil {
			return "", err
		}
		if answer == "" {
			return words[0], nil
		}
		for _, w := range words {
			if strings.EqualFold(answer, w) {
				return w, nil
			}
		}
		c.Infof("aileron: answer with %s", hint.Alternatives(words))
	}
	return "", fmt.Errorf("choose the %s: none of %s was chosen", what, hint.Alternatives(words))
}

// MaxTries is how often a question is asked again.
const MaxTries = 3

// Confirm asks one question for yes or no.
func (con *Console) Confirm(ctx context.Context, question string, fallback bool) (bool, error) {
	c, err := con.Converse()
	if err != nil {
		return false, err
	}
	defer c.End()
	return c.Yes(ctx, question, fallback)
}
