package engine

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/procid"
)

// dirForm names a temporary directory after the process that it belongs to, by
// the three numbers of its identity.
const dirForm = "aileron-engine-%d-%d-%d-"

// MakeDir makes a temporary directory that belongs to this process. The caller
// removes it; what a killed process leaves, [Find] removes.
func MakeDir() (string, error) {
	id, err := procid.Of(os.Getpid())
	if err != nil {
		return "", err
	}
	pid, start, namespace, err := procid.Numbers(id)
	if err != nil {
		return "", err
	}
	return os.MkdirTemp("", fmt.Sprintf(dirForm, pid, start, namespace))
}

// sweepDirs removes the directories of killed processes.
func sweepDirs() {
	entries, _ := os.ReadDir(os.TempDir()) // an error: there is nothing to remove
	for _, entry := range entries {
		var pid, start, namespace uint64
		if _, err := fmt.Sscanf(entry.Name(), dirForm, &pid, &start, &namespace); err != nil {
			continue
		}
		if !procid.Lives(procid.Join(pid, start, namespace)) {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), entry.Name()))
		}
	}
}
