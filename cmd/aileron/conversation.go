package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// conversation is several questions at a terminal, of which some ask for secrets. While it lasts the terminal echoes
// nothing but the answers to its open questions: a secret that is typed or pasted too early, or with more lines than
// it should have, is not on the screen. Nor is it an answer: what was typed before a question is discarded.
type conversation struct {
	app    *app
	in     *os.File
	before unix.Termios
}

// converse begins a conversation. The caller ends it.
func (a *app) converse() (*conversation, error) {
	in, ok := a.stdin.(*os.File)
	if !ok {
		return nil, errors.New("ask on the terminal: there is none")
	}
	before, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	c := &conversation{app: a, in: in, before: *before}
	c.echo(false)
	return c, nil
}

func (c *conversation) echo(on bool) {
	now := c.before
	if !on {
		now.Lflag &^= unix.ECHO
	}
	_ = unix.IoctlSetTermios(int(c.in.Fd()), unix.TCSETS, &now)
}

// end restores the terminal.
func (c *conversation) end() { _ = unix.IoctlSetTermios(int(c.in.Fd()), unix.TCSETS, &c.before) }

// line asks a question and returns the line that answers it.
func (c *conversation) line(ctx context.Context, question string) (string, error) {
	c.app.asked = true
	defer c.echo(false)
	line, err := ask(ctx, func() error {
		flushTyped(c.in)
		c.echo(true)
		fmt.Fprint(c.app.stderr, c.app.message(question)+" ")
		return nil
	}, func() ([]byte, error) { return readTyped(c.in) })
	if err != nil {
		fmt.Fprintln(c.app.stderr)
	}
	if exit := (exitError{}); errors.As(err, &exit) {
		return "", exit
	}
	if err != nil {
		return "", fmt.Errorf("ask %q: %w", question, errInputEnded)
	}
	return strings.TrimSpace(string(line)), nil
}

// yes asks a question for yes or no. An empty line is fallback.
func (c *conversation) yes(ctx context.Context, question string, fallback bool) (bool, error) {
	return c.yesOr(ctx, question, fallback, nil)
}

// yesOr is yes with a third answer, a question mark, to which explain prints more. It is nil if there is no more.
func (c *conversation) yesOr(ctx context.Context, question string, fallback bool, explain func()) (bool, error) {
	choice := " [y/N]"
	if fallback {
		choice = " [Y/n]"
	}
	for range maxTries {
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
		c.app.infof("aileron: answer with yes or no")
	}
	return false, nil
}

// choose asks for one of a few words. An empty line is the first of them.
func (c *conversation) choose(ctx context.Context, what string, words []string) (string, error) {
	for range maxTries {
		answer, err := c.line(ctx, fmt.Sprintf("%s: %s? [%s]", what, alternatives(words), words[0]))
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
		c.app.infof("aileron: answer with %s", alternatives(words))
	}
	return "", fmt.Errorf("choose the %s: none of %s was chosen", what, alternatives(words))
}

// maxTries is how often a question is asked again.
const maxTries = 3

// confirm asks one question for yes or no.
func (a *app) confirm(ctx context.Context, question string, fallback bool) (bool, error) {
	c, err := a.converse()
	if err != nil {
		return false, err
	}
	defer c.end()
	return c.yes(ctx, question, fallback)
}
