package clock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildWith builds the program with a package time whose wall clock a file
// sets while it runs: a namespace has no wall clock of its own, and a static
// program loads no libfaketime. Everything else is Go's own.
func buildWith(dir string) (program string, err error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	from, root := strings.TrimSpace(string(out)), filepath.Join(dir, "goroot")
	if err := farm(from, root); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "aileron")
	build := exec.Command(filepath.Join(from, "bin", "go"), "build", "-o", program, "../../cmd/aileron")
	build.Env = append(os.Environ(), "GOROOT="+root, "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build aileron with another clock: %w\n%s", err, out)
	}
	return program, nil
}

// farm makes root a copy of a GOROOT by links, in which package time is ours.
func farm(from, root string) error {
	if err := os.MkdirAll(filepath.Join(root, "src", "time"), 0o700); err != nil {
		return err
	}
	for _, dir := range []string{"", "src", "src/time"} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := filepath.Join(root, dir, e.Name())
			if err := os.Symlink(filepath.Join(from, dir, e.Name()), at); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
	}
	clock, err := os.ReadFile("testdata/offset.go.txt")
	if err != nil {
		return err
	}
	const file, reads = "src/time/time.go", "sec, nsec, mono := runtimeNow()\n"
	text, err := os.ReadFile(filepath.Join(from, file))
	if err != nil {
		return err
	}
	if strings.Count(string(text), reads) != 1 {
		return errors.New("package time does not read the clock where this suite expects it")
	}
	ours := strings.Replace(string(text), reads, reads+"sec += clockOffset()\n", 1)
	return errors.Join(os.Remove(filepath.Join(root, file)),
		os.WriteFile(filepath.Join(root, file), []byte(ours), 0o600),
		os.WriteFile(filepath.Join(root, "src/time/offset.go"), clock, 0o600))
}
