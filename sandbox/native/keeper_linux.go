package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// RunStage runs a process of a sandbox's own, and does not return.
func RunStage() {
	debug.SetGCPercent(-1) // until it is set up
	if err := gateway.DropBoundingSet(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", refused, err)
		os.Exit(1)
	}
	stage := runInit
	if os.Args[0] == keeperName {
		stage = runKeeper
	}
	code, err := stage()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// runKeeper sets up the sandbox's network, starts the init, and is the gateway until the init ends.
func runKeeper() (int, error) {
	told := os.NewFile(fdLaunch, "launch")
	var l launch
	if err := readLaunch(told, &l, false); err != nil {
		return 1, err
	}
	init, ready, err := startInit(&l, told)
	if err != nil {
		return 1, fmt.Errorf("%s%w", refused, err)
	}
	code := make(chan int, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		code <- waitFor(init)
		cancel()
	}()
	if err := serveGateway(ctx, l, ready); err != nil {
		return 1, fmt.Errorf("%s%w", refused, err)
	}
	return <-code, nil
}

// serveGateway serves the gateway, without a privilege and behind the sandbox's own filter, until ctx ends.
func serveGateway(ctx context.Context, l launch, ready *os.File) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make the keeper undumpable: %w", err)
	}
	if err := restrictGateway(); err != nil {
		return err
	}
	if err := installFilter(l.Filter); err != nil {
		return err
	}
	debug.SetGCPercent(50) // as in a container of its own
	uplink := "/proc/self/fd/" + strconv.Itoa(fdUplink)
	return gateway.Run(ctx, gateway.Config{
		KeepUser: true, Ready: ready, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Proxy: uplink + "/proxy.sock", Redirect: uplink + "/redirect.sock", Ports: uplink + "/ports.sock",
	})
}

// startInit starts the init, which waits for a byte on ready.
func startInit(l *launch, told *os.File) (init *os.Process, ready *os.File, err error) {
	if l.Map {
		if err := mapUser(l.UID, l.GID); err != nil {
			return nil, nil, err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, nil, fmt.Errorf("make the mounts its own: %w", err)
	}
	// The init's user is mapped by the number that it has here.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, nil, fmt.Errorf("mount a /proc of its own: %w", err)
	}
	program, err := readOnlyProgram(l.Binary)
	if err != nil {
		return nil, nil, err
	}
	waiting, ready, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	files := []*os.File{told}
	for fd := fdControl; fd <= fdStderr; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "of the init"))
	}
	if program != nil {
		defer program.Close()
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Env: []string{}, Dir: "/", Stderr: os.Stderr,
		Args: append([]string{initName, "--"}, l.Command...), ExtraFiles: append(files, waiting)}
	if program != nil {
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", program.Fd())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
			unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: l.UID, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: l.GID, HostID: 0, Size: 1}},
		AmbientCaps: setUpCaps(),
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("make the namespaces of the command: %w", err)
	}
	for _, f := range append(files, waiting) {
		_ = f.Close()
	}
	// What the gateway keeps is its own.
	unix.CloseOnExec(fdUplink)
	return cmd.Process, ready, nil
}

// mapUser maps the user of this process to user 0 of its namespace.
func mapUser(uid, gid int) error {
	for _, f := range []struct{ name, text string }{
		{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("0 %d 1", uid)}, {"gid_map", fmt.Sprintf("0 %d 1", gid)},
	} {
		if err := os.WriteFile("/proc/self/"+f.name, []byte(f.text), 0); err != nil {
			return fmt.Errorf("map the user of its namespace: %w", err)
		}
	}
	return nil
}

// readOnlyProgram returns this program's file by a mount of its own that is read-only: a process of the sandbox that
// gets hold of the init's program could otherwise open it again to write (CVE-2019-5736). It is nil where the sandbox's
// user may not write to it anyway, and the path is not his to enter.
func readOnlyProgram(path string) (*os.File, error) {
	fd, err := readOnlyTree(path)
	if err == nil {
		return os.NewFile(uintptr(fd), "program"), nil
	}
	if !errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("make its program read-only: %w", err)
	}
	if err := unix.Access("/proc/self/exe", unix.W_OK); err == nil {
		return nil, errors.New("make its program read-only: the sandbox's user may write to it")
	}
	return nil, nil //nolint:nilnil // there is none, which is no error
}

// installFilter makes every thread of this process, and all that it starts, subject to a filter.
func installFilter(filter []instruction) error {
	program := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	if len(program) == 0 {
		return errors.New("install the seccomp filter: there is none")
	}
	//nolint:gosec // the kernel bounds it at 4096, and reads it during the call
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	//nolint:gosec // as above
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	switch {
	case errno != 0:
		return fmt.Errorf("install the seccomp filter: %w", errno)
	case r != 0:
		return fmt.Errorf("install the seccomp filter: thread %d has another", r)
	}
	return nil
}

// waitFor returns the exit code of a process, 128+N if signal N ended it.
func waitFor(p *os.Process) int {
	state, err := p.Wait()
	if err != nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
