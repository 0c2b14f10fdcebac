package config

import (
	"errors"
	"path/filepath"
	"strings"
)

// Decider is a program of the owner's that is asked about requests that wait: "unix:/PATH", or a command as a list. Its
// path is absolute, so that no directory in which aileron is started chooses the program.
type Decider struct {
	Socket  string // the path of its unix socket
	Command []string
}

// errDecider is the error of a value that names no program.
var errDecider = errors.New(`approval.decider must be "unix:/PATH", or a command with its path such as ` +
	`["/usr/local/bin/decide"]`)

// UnmarshalTOML reads a decider.
func (d *Decider) UnmarshalTOML(v any) error {
	*d = Decider{}
	switch v := v.(type) {
	case string:
		path, ok := strings.CutPrefix(v, "unix:")
		if !ok || !isPath(path) {
			return errDecider
		}
		d.Socket = path
		return nil
	case []any:
		for _, word := range v {
			text, ok := word.(string)
			if !ok || strings.Contains(text, "\x00") {
				return errDecider
			}
			d.Command = append(d.Command, text)
		}
		if len(d.Command) == 0 || !isPath(d.Command[0]) {
			return errDecider
		}
		return nil
	}
	return errDecider
}

func isPath(text string) bool { return filepath.IsAbs(text) && !strings.Contains(text, "\x00") }

// IsSet reports whether there is a decider.
func (d Decider) IsSet() bool { return d.Socket != "" || len(d.Command) > 0 }
