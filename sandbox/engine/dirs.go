package engine

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// dirForm names a temporary directory after the process that it belongs to, by
// the three numbers of its identity.
const dirForm = "aileron-engine-%d-%d-%d-"

// MakeDir makes a temporary directory that belongs to this process. The caller
// removes it; what a killed process leaves, [Patience.Find] removes.
func MakeDir() (string, error) { return MakeDirIn("") }

// MakeDirIn makes a directory as [MakeDir] does, in a directory that is made where it is missing. "" is that of
// temporary files. SweepDirs does not look into any other one.
func MakeDirIn(parent string) (string, error) {
	if parent != "" {
		if err := os.MkdirAll(parent, 0o711); err != nil { //nolint:gosec // the sandbox's user passes through it
			return "", err
		}
		sweepDirsIn(parent)
	}
	return makeDirIn(parent)
}

// FileParents are the directories in which the files of a sandbox may be, for [MakeDirIn]. A virtual machine that sees
// a person's home need not see the temporary directory.
func FileParents() []string {
	parents := []string{""}
	if cache, err := os.UserCacheDir(); err == nil {
		parents = append(parents, filepath.Join(cache, "aileron", "sandboxes"))
	}
	return parents
}

// memoryDir is where this host keeps shared memory, as files.
const memoryDir = "/dev/shm"

// MakeDirInMemory makes a directory as [MakeDir] does, for files of at most size bytes that are kept in memory: to make
// and remove a file there, takes a tenth of what it takes on a disk. It is "" where this host has no room for them. An
// engine that runs elsewhere may have no such directory.
func MakeDirInMemory(size int64) string {
	info, err := os.Lstat(memoryDir)
	if err != nil || !system.IsMemory(memoryDir) {
		return ""
	}
	// Others write to it too, and must not replace what is ours.
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return ""
	}
	const share = 8 // of what is left
	if free, err := system.FreeSpace(memoryDir); err != nil || free/share < size {
		return ""
	}
	dir, err := makeDirIn(memoryDir)
	if err != nil {
		return ""
	}
	return dir
}

func makeDirIn(parent string) (string, error) {
	id, err := procid.Of(os.Getpid())
	if err != nil {
		return "", err
	}
	pid, start, namespace, err := procid.Numbers(id)
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, fmt.Sprintf(dirForm, pid, start, namespace))
}

// sweepDirs removes the directories of killed processes.
func SweepDirs() {
	for _, parent := range []string{os.TempDir(), memoryDir} {
		sweepDirsIn(parent)
	}
}

func sweepDirsIn(parent string) {
	entries, _ := os.ReadDir(parent) // an error: there is nothing to remove
	for _, entry := range entries {
		var pid, start, namespace uint64
		if _, err := fmt.Sscanf(entry.Name(), dirForm, &pid, &start, &namespace); err != nil {
			continue
		}
		if !procid.Lives(procid.Join(pid, start, namespace)) {
			_ = os.RemoveAll(filepath.Join(parent, entry.Name()))
		}
	}
}
