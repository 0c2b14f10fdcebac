package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// consents remembers in aileron's home what a person has agreed to. A sandbox does not see it.
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

// agreed asks a question and reports whether the answer is yes.
func (a *app) agreed(question string) (bool, error) {
	answer, err := a.promptLine(question + " [y/N]")
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// consentToProject asks whether a project's file may widen what its session may do, unless a person has agreed to the
// same for the same bytes of the same project. What it would do is a part of that: flags decide whether some keys
// matter.
func (a *app) consentToProject(home string, u *projectUse) error {
	if len(u.widens) == 0 {
		return nil
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{u.file.Path, u.file.Hash}, u.widens...), "\x00")))
	name := "project-" + hex.EncodeToString(sum[:])
	if (consents{home}).has(name) {
		return nil
	}
	if !u.trust {
		if !a.interactive() {
			asked := strings.Join(u.widens, "; ")
			return hint.New(fmt.Errorf("use %s: a person must agree to it first: %s", u.file.Path, asked),
				"read the file, then pass --trust-project; or start without it: --ignore-project")
		}
		a.infof("aileron: %s (%s) asks for more than a session has without it:", u.file.Path, u.file.Hash)
		for _, line := range u.widens {
			a.infof("  | %s", line)
		}
		yes, err := a.agreed("agree, and remember this content?")
		if err != nil {
			return err
		}
		if !yes {
			return hint.New(fmt.Errorf("use %s: %w", u.file.Path, errors.New("it was declined")),
				"start without it: --ignore-project")
		}
	}
	return consents{home}.add(name, u.file.Path+"\n"+u.file.Hash+"\n"+strings.Join(u.widens, "\n"))
}
