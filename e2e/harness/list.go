package harness

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// listTries is how often an engine is asked for a list before a failure counts.
const listTries = 5

// List returns the output of an engine's command that changes nothing. It is tried again where it fails: Podman 4 may
// fail to list what another suite removes at the same moment.
func List(cmd *exec.Cmd) (out string, err error) {
	tries := 0
	Poll(Patience, 200*time.Millisecond, func() bool {
		again := exec.Command(cmd.Path, cmd.Args[1:]...)
		again.Env, again.Dir = cmd.Env, cmd.Dir
		var text []byte
		text, err = again.Output()
		out = string(text)
		tries++
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return true // it succeeded, or did not start
		}
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
		return tries == listTries
	})
	return out, err
}
