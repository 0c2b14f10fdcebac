package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/internal/regular"
)

func TestOnlyARegularFileIsRead(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fatal(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	fatal(os.WriteFile(filepath.Join(dir, "file"), []byte("12345678"), 0o600))
	fatal(os.WriteFile(filepath.Join(dir, "large"), []byte("123456789"), 0o600))
	fatal(os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")))
	fatal(os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	fatal(os.Symlink(outside, filepath.Join(dir, "out")))
	fatal(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root, err := os.OpenRoot(dir)
	fatal(err)
	defer root.Close()
	for name, want := range map[string]string{
		"file": "", "large": "it is larger than 8 bytes", "link": "it is a symbolic link", "zero": "it is a symbolic link",
		"pipe": "it is not a regular file", ".": "it is not a regular file", "none": "no such file",
	} {
		for how, read := range map[string]func() ([]byte, error){
			"Read":   func() ([]byte, error) { return regular.Read(filepath.Join(dir, name), 8) },
			"ReadIn": func() ([]byte, error) { return regular.ReadIn(root, name, 8) },
		} {
			data, err := read()
			switch {
			case want == "" && (err != nil || string(data) != "12345678"):
				t.Errorf("%s(%s) = %q, %v", how, name, data, err)
			case how == "ReadIn" && strings.HasSuffix(want, "link") && err != nil && data == nil: // it leads out of root
			case want != "" && (err == nil || data != nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s(%s) = %q, %v, want %q", how, name, data, err, want)
			case errors.Is(err, fs.ErrNotExist) != (name == "none"):
				t.Errorf("%s(%s) = %v", how, name, err)
			}
		}
	}
	if data, err := regular.ReadIn(root, "out/secret", 8); err == nil {
		t.Errorf("a link on the way leads to %q", data)
	}
}
