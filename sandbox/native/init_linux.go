package native

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// runInit prepares the sandbox, and is its process 1 until the command has ended.
func runInit() (int, error) {
	control, err := connOf(os.NewFile(fdControl, "control"))
	if err != nil {
		return 1, fmt.Errorf("open the control socket: %w", err)
	}
	var l launch
	told := os.NewFile(fdLaunch, "launch")
	err = errors.Join(readLaunch(told, &l, true), told.Close())
	if err == nil {
		err = closeOthers()
	}
	var terminal terminal
	if err == nil {
		terminal, err = prepare(&l)
	}
	if err == nil {
		err = awaitGateway()
	}
	if err == nil {
		err = look(&l)
	}
	if err != nil {
		return 1, send(control, message{Kind: "refused", Reason: err.Error()}, -1)
	}
	if err := send(control, message{Kind: "sealed"}, terminal.fd()); err != nil {
		return 1, err
	}
	terminal.closeMaster()
	l.Etc, l.Files = nil, nil
	debug.SetGCPercent(50)
	return runCommand(control, &l, terminal)
}

// closeOthers closes what this process has inherited besides what is its own, and keeps all of that from the command.
func closeOthers() error {
	if err := unix.CloseRange(fdReady+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what was inherited: %w", err)
	}
	for fd := fdStdin; fd <= fdReady; fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}

// prepare makes the sandbox's files and all else that takes a privilege, and drops every privilege.
func prepare(l *launch) (terminal, error) {
	if err := makeRoot(l); err != nil {
		return terminal{}, err
	}
	if err := unix.Sethostname([]byte(Hostname)); err != nil {
		return terminal{}, fmt.Errorf("set the host name: %w", err)
	}
	if err := limit(l); err != nil {
		return terminal{}, err
	}
	var t terminal
	if l.TTY {
		var err error
		if t, err = openTerminal(); err != nil {
			return terminal{}, fmt.Errorf("make the command's terminal: %w", err)
		}
	}
	if err := restrictCommand(l); err != nil {
		return terminal{}, err
	}
	if err := gateway.DropCapabilities(); err != nil {
		return terminal{}, fmt.Errorf("drop privileges: %w", err)
	}
	if err := installFilter(l.Filter); err != nil {
		return terminal{}, err
	}
	// What the command could take from this process otherwise: its memory, its descriptors, its program.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return terminal{}, fmt.Errorf("make process 1 undumpable: %w", err)
	}
	return t, nil
}

// limit sets the limits of every process of the sandbox.
func limit(l *launch) error {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0}
	if l.Processes > 0 {
		limits[unix.RLIMIT_NPROC] = uint64(l.Processes)
	}
	for which, most := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(which, &now); err != nil {
			return fmt.Errorf("read a limit: %w", err)
		}
		most = min(most, now.Max)
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	return nil
}

// awaitGateway waits until the gateway serves.
func awaitGateway() error {
	ready := os.NewFile(fdReady, "ready")
	defer ready.Close()
	if n, err := ready.Read(make([]byte, 16)); n == 0 {
		return fmt.Errorf("wait for the gateway: %w", err)
	}
	return nil
}

// terminal is the command's: its other end, and its own.
type terminal struct{ master, slave *os.File }

// openTerminal makes a terminal of the sandbox's own, so that its name is one in the sandbox.
func openTerminal() (terminal, error) {
	fd, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return terminal{}, err
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return terminal{}, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return terminal{}, err
	}
	name := "/dev/pts/" + strconv.Itoa(number)
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	return terminal{master, slave}, err
}

// fd is the descriptor of the other end, or -1.
func (t terminal) fd() int {
	if t.master == nil {
		return -1
	}
	return int(t.master.Fd())
}

func (t terminal) closeMaster() {
	if t.master != nil {
		_ = t.master.Close()
	}
}

// runCommand starts the command when aileron asks for it, passes signals on, and returns its exit code.
func runCommand(control *net.UnixConn, l *launch, t terminal) (int, error) {
	m, err := receive(control)
	if err != nil || m.Kind != "begin" {
		return 1, err // aileron has changed its mind
	}
	files := []*os.File{os.NewFile(fdStdin, "stdin"), os.NewFile(fdStdout, "stdout"), os.NewFile(fdStderr, "stderr")}
	attr := &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}}
	if t.slave != nil {
		attr.Files = []*os.File{t.slave, t.slave, t.slave}
		attr.Sys.Setctty = true
	}
	command, err := os.StartProcess(cmp.Or(l.Program, l.Command[0]), l.Command, attr)
	if err != nil {
		code, reason := whyNot(err)
		return code, send(control, message{Kind: "failed", Code: code, Reason: reason}, -1)
	}
	for _, f := range append(files, t.slave) {
		if f != nil {
			_ = f.Close() // the command's streams end with it
		}
	}
	if err := send(control, message{Kind: "began"}, -1); err != nil {
		return 1, err
	}
	go func() {
		for {
			m, err := receive(control)
			if err != nil {
				os.Exit(1) // aileron has ended
			}
			if m.Kind == "signal" {
				_ = unix.Kill(command.Pid, syscall.Signal(m.Signal))
			}
		}
	}()
	code := reap(command.Pid)
	return code, send(control, message{Kind: "ended", Code: code}, -1)
}

func receive(control *net.UnixConn) (m message, err error) {
	buf := make([]byte, 4096)
	n, err := control.Read(buf)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(buf[:n], &m)
}

// reap waits for every process whose parent has ended, and for the command, whose exit code it returns. The kernel ends
// the others then.
func reap(command int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1
		case pid == command && status.Signaled():
			return 128 + int(status.Signal())
		case pid == command:
			return status.ExitStatus()
		}
	}
}

// whyNot returns what a shell would exit with for a command that could not be executed, and why, for people.
func whyNot(err error) (code int, reason string) {
	reason = err.Error()
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		reason = bad.Err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 127, reason
	}
	return 126, reason
}
