package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// consents remembers in aileron's home what a person has agreed to, and which offers were declined. A sandbox does not
// see it.
type consents struct{ home string }

// record returns the file of a consent.
func (c consents) record(name string) string { return filepath.Join(c.home, "consents", name) }

// has reports whether a person has agreed.
func (c consents) has(name string) bool {
	_, err := os.Lstat(c.record(name))
	return err == nil
}

// add remembers that a person has agreed. note is for those who look into the directory.
func (c consents) add(name, note string) error {
	if err := os.MkdirAll(filepath.Dir(c.record(name)), 0o700); err != nil {
		return fmt.Errorf("remember the consent: %w", err)
	}
	if err := os.WriteFile(c.record(name), []byte(note+"\n"), 0o600); err != nil {
		return fmt.Errorf("remember the consent: %w", err)
	}
	return nil
}

// OfferOnce asks a person a question, unless the same offer was declined before. later is the command that does it.
func (a *Asker) OfferOnce(ctx context.Context, home, offer, question string, fallback bool, later string) (bool,
	error) {
	sum := sha256.Sum256([]byte(offer))
	c, name := consents{home}, "declined-"+hex.EncodeToString(sum[:])
	if c.has(name) {
		return false, nil
	}
	yes, err := a.Confirm(ctx, question, fallback)
	if err != nil || yes {
		return yes, err
	}
	a.Infof("aileron: this is not asked again; later: %s", later)
	return false, c.add(name, offer)
}

// lines returns the lines of what a person has agreed to; nil if it is nothing.
func (c consents) lines(name string) []string {
	data, err := os.ReadFile(c.record(name))
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// ConsentToProject asks whether a project's file may widen what its session may do, unless a person has agreed to the
// same for the same bytes of the same project. Each of what it would do is agreed to: flags decide whether some keys
// matter, and sandbox check and build put only those of the image in force. A [Widening] with Each is never remembered.
func (a *Asker) ConsentToProject(home string, u *Use) error {
	sum := sha256.Sum256([]byte(strings.Join([]string{u.File.Path, u.File.Hash}, "\x00")))
	name := "project-" + hex.EncodeToString(sum[:])
	agreed := consents{home}.lines(name)
	var news []Widening
	for _, w := range u.Widens {
		// Quoted: what a repository names does not become a line of its own.
		if !slices.Contains(agreed, strconv.Quote(w.What)) {
			news = append(news, w)
		}
	}
	if len(news) == 0 {
		return nil
	}
	if !u.Trust {
		if err := a.askAboutProject(u, news); err != nil {
			return err
		}
	}
	if agreed == nil {
		agreed = []string{strconv.Quote(u.File.Path), u.File.Hash}
	}
	for _, w := range news {
		if !w.Each {
			agreed = append(agreed, strconv.Quote(w.What))
		}
	}
	return consents{home}.add(name, strings.Join(slices.DeleteFunc(agreed, func(l string) bool { return l == "" }), "\n"))
}

// askAboutProject shows what a project's file widens, with all values, and asks whether it may.
func (a *Asker) askAboutProject(u *Use, news []Widening) error {
	if !a.Interactive() {
		var asked []string
		for _, w := range news {
			asked = append(asked, w.What)
		}
		return hint.New(fmt.Errorf("use %q: a person must agree to it first: %s", u.File.Path, strings.Join(asked, "; ")),
			"read the file, then pass --trust-project; or start without it: --ignore-project")
	}
	a.Infof("aileron: %q (%s) asks for more than a session has without it:", u.File.Path, u.File.Hash)
	for _, w := range news {
		a.Infof("  | %s%s", w.What, w.Value)
		for line := range strings.Lines(string(w.Text)) {
			fmt.Fprintln(a.Stderr, "  |   "+termsafe.Line(strings.TrimRight(line, "\r\n")))
		}
	}
	if len(news) > 1 {
		a.Infof("aileron: in all: %s", inAll(news))
	}
	question := "agree, and remember this content?"
	if slices.ContainsFunc(news, func(w Widening) bool { return w.Each }) {
		question = "agree for this start? What runs on this host is asked about again"
	}
	yes, err := a.Agreed(question)
	if err != nil {
		return err
	}
	if !yes {
		return hint.New(fmt.Errorf("use %s: %w", u.File.Path, failure.Declined("it was declined")),
			"start without it: --ignore-project")
	}
	return nil
}

// inAll returns in one line what a person is asked about. The list above it may be longer than the terminal, with a
// file and values of the project's choice in it.
func inAll(news []Widening) string {
	counts, order := map[string]int{}, []string{}
	for _, w := range news {
		if counts[w.Brief]++; counts[w.Brief] == 1 && w.Brief != "" {
			order = append(order, w.Brief)
		}
	}
	var all []string
	for _, brief := range order {
		if n := counts[brief]; n > 1 {
			brief = fmt.Sprintf("%s (%d)", brief, n)
		}
		all = append(all, brief)
	}
	if n := counts[""]; n > 0 {
		all = append(all, fmt.Sprintf("%d more", n))
	}
	return strings.Join(all, "; ")
}
