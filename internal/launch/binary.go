package launch

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/hint"
)

// staticBinary returns the path of this program's own file, which the gateway's container runs: it must not need
// anything of an image.
func staticBinary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find aileron's own file: %w", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", hint.New(fmt.Errorf("read aileron's own file: %w", err), "sandboxes need a Linux build of aileron")
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", hint.New(errors.New("use aileron as the gateway: this build is not static"),
				"build it with CGO_ENABLED=0 (just build)")
		}
	}
	return path, nil
}
