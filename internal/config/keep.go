package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/hint"
)

// KeepUnattended sets sandbox.unattended, which must not be set, in config.toml of a home. The rest of the file stays
// as it is.
func KeepUnattended(home string, value bool) error {
	return keep(home, "sandbox", fmt.Sprintf("unattended = %v", value), func(c Config) bool {
		return c.Sandbox.Unattended != nil && *c.Sandbox.Unattended == value
	})
}

// KeepApprove sets approval.approve, as KeepUnattended does.
func KeepApprove(home string, patterns []string) error {
	quoted := make([]string, len(patterns))
	for i, p := range patterns {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	return keep(home, "approval", "approve = ["+strings.Join(quoted, ", ")+"]", func(c Config) bool {
		return c.Approval.Approve != nil && slices.Equal(c.Approval.Approve, patterns)
	})
}

// keep adds a line to a table of config.toml. holds reports whether the file has it then.
func keep(home, table, line string, holds func(Config) bool) error {
	path := filepath.Join(home, "config.toml")
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &UnreadableError{err}
	}
	text := string(was)
	begins := regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*` + table + `[ \t]*\][ \t]*(#.*)?$`)
	if at := begins.FindStringIndex(text); at != nil {
		text = text[:at[1]] + "\n" + line + text[at[1]:]
	} else {
		if text != "" {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		text += "[" + table + "]\n" + line + "\n"
	}
	var c Config
	if _, err := toml.Decode(text, &c); err != nil || !holds(c) {
		return hint.New(fmt.Errorf("add to %s: it has no [%s] that can be added to", path, table),
			"write %s below [%s] yourself", line, table)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a file that is kept elsewhere stays there
	}
	if err := durable.Replace(path, []byte(text)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
