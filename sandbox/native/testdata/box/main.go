// Command box runs a command in a sandbox of package native, without aileron: built without cgo for the tests, which
// run it as several users.
//
//	box CONFIG.json
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/sandbox/native"
)

func main() {
	if native.IsStage() {
		native.RunStage()
	}
	if len(os.Args) > 1 && filepath.Base(os.Args[1]) == "evil" {
		// A script whose interpreter is /proc/self/exe: the init has executed its own program as the command.
		fmt.Println("write to the program:", unix.Faccessat(unix.AT_FDCWD, "/proc/self/exe", unix.W_OK, 0))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "layers" {
		fmt.Println(landlockLayers())
		return
	}
	code, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "box:", err)
		if r := (*native.Refusal)(nil); errors.As(err, &r) {
			fmt.Fprintln(os.Stderr, "hint:", r.Remedy)
		}
	}
	os.Exit(code)
}

// landlockLayers returns how many more layers of Landlock this process takes: 16 without any, 0 without Landlock.
func landlockLayers() (n int) {
	runtime.LockOSThread()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SOCK}
	for n < 20 {
		fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
		if errno != 0 {
			return n
		}
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
			return n
		}
		n++
	}
	return n
}

func run(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 125, err
	}
	var c native.Config
	if err := json.Unmarshal(data, &c); err != nil {
		return 125, err
	}
	if c.Binary, err = os.Executable(); err != nil {
		return 125, err
	}
	if c.Etc, err = native.HostEtc(); err != nil {
		return 125, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	box, err := native.Start(c)
	if err != nil {
		return 125, err
	}
	defer box.Close()
	var copied sync.WaitGroup
	if c.TTY {
		go func() { _, _ = io.Copy(box.Terminal, os.Stdin) }()
		copied.Go(func() { _, _ = io.Copy(os.Stdout, box.Terminal) })
	} else {
		go func() { _, _ = io.Copy(box.Stdin, os.Stdin); _ = box.Stdin.Close() }()
		copied.Go(func() { _, _ = io.Copy(os.Stdout, box.Stdout) })
		copied.Go(func() { _, _ = io.Copy(os.Stderr, box.Stderr) })
	}
	if err := box.Begin(); err != nil {
		if bad := (*native.CommandError)(nil); errors.As(err, &bad) {
			return bad.Code, err
		}
		return 125, err
	}
	for {
		select {
		case sig := <-signals:
			box.Signal(sig.(syscall.Signal))
		case exit := <-box.Ended():
			copied.Wait()
			return exit.Code, nil
		}
	}
}
