package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ProgramsEnv names the directory into which [BuildForAll] built aileron.
// Suites that find it set take that program and do not build their own.
const ProgramsEnv = "AILERON_TEST_PROGRAMS"

// What BuildForAll builds: aileron with cheap vaults, and as it is released.
const (
	forTests = "aileron"
	released = "aileron-released"
)

// BuildForAll builds aileron into dir, once for all suites, and records which
// sources it was built from: [Build] refuses it once they have changed.
func BuildForAll(dir string) error {
	before, err := sourcesDigest(".")
	if err != nil {
		return err
	}
	root, err := moduleRoot(".")
	if err != nil {
		return err
	}
	for name, ldflags := range map[string]string{forTests: cheapVaults, released: ""} {
		program := filepath.Join(dir, name)
		if err := compile(program, filepath.Join(root, "cmd", "aileron"), ldflags); err != nil {
			return err
		}
		built, err := fileDigest(program)
		if err != nil {
			return err
		}
		if err := os.WriteFile(recordOf(program), []byte(record(before, built)), 0o600); err != nil {
			return err
		}
	}
	after, err := sourcesDigest(".")
	if err == nil && before != after {
		err = fmt.Errorf("build aileron: its sources changed while it was built\nhint: run it again")
	}
	return err
}

// recordOf is the file that records what a program was built from.
func recordOf(program string) string { return program + ".sources" }

func record(sources, program string) string { return sources + " " + program + "\n" }

// takeProgram copies a program of BuildForAll to path. It fails when that was
// built from other sources than those of now, or is another file than the one
// that was built.
func takeProgram(program, path string) error {
	want, err := os.ReadFile(recordOf(program))
	if err != nil {
		return fmt.Errorf("take aileron from %s: %w\nhint: unset %s, and each suite builds its own", ProgramsEnv, err,
			ProgramsEnv)
	}
	// A copy: a suite may do to its program what it likes.
	if err := copyProgram(program, path); err != nil {
		return err
	}
	sources, err := sourcesDigest(".")
	if err != nil {
		return err
	}
	built, err := fileDigest(path)
	if err != nil {
		return err
	}
	if record(sources, built) != string(want) {
		return fmt.Errorf("take aileron from %s: %s was not built from the sources that are here now\n"+
			"hint: run just test again, or unset %s", ProgramsEnv, program, ProgramsEnv)
	}
	return nil
}

func copyProgram(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy aileron: %w", err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("copy aileron: %w", err)
	}
	_, err = io.Copy(dst, src)
	if closeErr := dst.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("copy aileron: %w", err)
	}
	return nil
}

// sourcesDigest is a digest of all that aileron is built from, and of more:
// every file of the module that is neither a test, nor test data, nor text.
func sourcesDigest(dir string) (string, error) {
	root, err := moduleRoot(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), os.Getenv("GOFLAGS"))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && !sourceDir(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".md") {
			return nil
		}
		digest, err := fileDigest(path)
		fmt.Fprintln(sum, name, digest)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the sources of aileron: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sourceDir reports whether a directory may hold what aileron is built from.
func sourceDir(name string) bool {
	base := filepath.Base(name)
	return base != "testdata" && !strings.HasPrefix(base, ".") &&
		!slices.Contains([]string{"e2e", "docs", "scripts", "bin"}, name)
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// moduleRoot is the directory at or above dir that has the module's go.mod.
func moduleRoot(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the module: there is no go.mod at or above %s", dir)
		}
	}
}
