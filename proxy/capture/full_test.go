//go:build linux

package capture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// captureUntilFull is a process that captures to a file system of its own until that is full, and prints what it was
// warned of, and the file.
func captureUntilFull(dir, mode string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		return err
	}
	warned := make(chan error, 10)
	f, err := Open(filepath.Join(dir, "x.har"), Options{Version: "test", Warn: func(err error) { warned <- err }})
	if err != nil {
		return err
	}
	if mode == "single" { // as on a file system that cannot exchange names
		if err := os.Remove(f.disk.next); err != nil {
			return err
		}
		f.disk.shown, f.disk.files[0] = 1, f.disk.files[1]
	}
	for i := 0; len(warned) == 0; i++ {
		record(f, i, 100<<10)
	}
	r, _ := http.NewRequest(http.MethodGet, "https://x.example/", http.NoBody)
	began := f.Begin(r) != nil
	if err := f.Close(); err != nil {
		return err
	}
	text, err := os.ReadFile(f.Path())
	if err != nil {
		return err
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(full{string(text), (<-warned).Error(), len(warned), len(left), began})
}

// full is what has become of a capture whose disk is full.
type full struct {
	Text, Warning string
	More, Files   int // warnings, files
	Began         bool
}

func TestAFullDiskEndsTheCaptureOnly(t *testing.T) {
	for _, mode := range []string{"two files", "single"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CAPTURE_UNTIL_FULL="+t.TempDir(), "CAPTURE_MODE="+mode)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if strings.Contains(fmt.Sprint(err, string(out)), "not permitted") {
			t.Skipf("no namespaces here: %v", err)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", mode, err, out)
		}
		var f full
		var d document
		if err := json.Unmarshal(out, &f); err != nil {
			t.Fatalf("%s: %v in %.300s", mode, err, out)
		}
		if err := json.Unmarshal([]byte(f.Text), &d); err != nil {
			t.Fatalf("%s: %v in a file of %d bytes that ends with %q", mode, err, len(f.Text),
				f.Text[max(0, len(f.Text)-80):])
		}
		// With two files, one lacks the newest entries: there may be no room for a comment after them.
		said := strings.Contains(d.Log.Comment, "no space left on device")
		if n := len(d.Log.Entries); n == 0 || n > 20 || !said && (d.Log.Comment != "" || mode == "single") {
			t.Errorf("%s: %d entries, and the comment %q", mode, n, d.Log.Comment)
		}
		if !strings.Contains(f.Warning, "no space left on device; requests go on without it") || f.More > 0 ||
			f.Files != 1 || f.Began {
			t.Errorf("%s: warned of %q, and %d times more; %d files; another exchange began: %t", mode, f.Warning, f.More,
				f.Files, f.Began)
		}
	}
}

// What another program puts in the place of the file stays there.
func TestAFileThatGoesAwayEndsTheCaptureOnly(t *testing.T) {
	for name, away := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return replace(path, "another file")
		},
		"a link": func(path string) error {
			if err := replace(path+".own", "another file"); err != nil {
				return err
			}
			_ = os.Remove(path)
			return os.Symlink(path+".own", path)
		},
		"with its directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		path := filepath.Join(t.TempDir(), "dir", "x.har")
		must.Do(t, os.Mkdir(filepath.Dir(path), 0o700))
		warned := make(chan error, 10)
		f := must.Get(Open(path, Options{Version: "test", Warn: func(err error) { warned <- err }}))(t)
		record(f, 1, 10)
		waitFor(t, func() bool { return len(read(t, path).Log.Entries) == 1 })
		must.Do(t, away(path))
		for i := range 20 {
			record(f, i, 10)
		}
		_ = f.Close()
		if len(warned) != 1 {
			t.Fatalf("%s: %d warnings", name, len(warned))
		}
		if err := <-warned; !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%s: warned of %v", name, err)
		}
		if name == "moved" && len(read(t, path+".old").Log.Entries) != 1 {
			t.Errorf("%s: the file has changed", name)
		}
		if text, _ := os.ReadFile(path); strings.HasPrefix(name, "re") && name != "removed" || name == "a link" {
			if string(text) != "another file" {
				t.Errorf("%s: the other file has %.40q now", name, text)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}

func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
