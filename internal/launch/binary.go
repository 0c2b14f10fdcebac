package launch

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ALRubinger/aileron/internal/hint"
)

// ownBinary returns the path of this program's own file. On Linux the gateway's container runs it: it must not need
// anything of an image.
func ownBinary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	if runtime.GOOS != "linux" {
		return path, nil
	}
	return path, checkStatic(path)
}

// checkStatic returns an error for a program that needs files of an image.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read the program %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return hint.New(errors.New("use aileron as the gateway: this build is not static"),
				"build it with CGO_ENABLED=0 (just build)")
		}
	}
	return nil
}

// binaryFor returns a program for a Linux machine of an architecture: own, if it is one, or else the file of a release
// beside it.
func binaryFor(own, arch string) (string, error) {
	if runtime.GOOS == "linux" && arch == runtime.GOARCH {
		return own, nil
	}
	path := filepath.Join(filepath.Dir(own), "aileron-linux-"+arch)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the program that it would run there, %s, is missing (it is that of the release for "+
			"Linux on %s)", path, arch)
	}
	return path, checkStatic(path)
}
