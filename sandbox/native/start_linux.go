package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sandbox is one that is sealed, and whose command waits for [Sandbox.Begin].
type Sandbox struct {
	// Stdin, Stdout and Stderr are the ends of the command's streams, for the caller to close; nil if it has a terminal.
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	// Terminal is the other end of the command's; nil if it has none.
	Terminal *os.File
	// Unenforced are the limits that nothing enforces, for people.
	Unenforced []string

	keeper  *os.Process
	control *net.UnixConn
	said    *tail
	cgroup  *cgroup
	command string
	sealed  chan sealing
	began   chan error
	ended   chan Exit
	gone    chan struct{} // closed when the keeper has ended
}

// sealing is the end of the init's preparation.
type sealing struct {
	terminal *os.File
	err      error
}

// startTime bounds the wait for a sandbox to be sealed, on the busiest machine.
const startTime = time.Minute

// Start makes a sandbox, and returns when it is sealed. Nothing of the command has run then. The error is a [Refusal]
// if this host does not let it be sealed.
func Start(c Config) (_ *Sandbox, err error) {
	l := launch{Config: c, UID: c.Owner.UID, GID: c.Owner.GID, Map: os.Geteuid() != 0}
	if l.Map {
		l.UID, l.GID = os.Geteuid(), os.Getegid()
	}
	filter, err := filterFor(c.Seccomp)
	if err != nil {
		return nil, err
	}
	for _, i := range filter {
		l.Filter = append(l.Filter, instruction(i))
	}
	s := &Sandbox{said: &tail{}, sealed: make(chan sealing, 1), began: make(chan error, 1),
		ended: make(chan Exit, 1), gone: make(chan struct{})}
	if len(c.Command) > 0 {
		s.command = c.Command[0]
	}
	if err := s.start(l); err != nil {
		s.Close()
		return nil, err
	}
	select {
	case seal := <-s.sealed:
		s.Terminal, err = seal.terminal, seal.err
	case <-s.gone:
		select {
		case seal := <-s.sealed:
			s.Terminal, err = seal.terminal, seal.err
		default:
			err = s.lost()
		}
	case <-time.After(startTime):
		err = fmt.Errorf("start the sandbox: it is not ready after %v", startTime)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// lost is the error of a keeper that ended before the sandbox was sealed.
func (s *Sandbox) lost() error {
	reason, found := strings.CutPrefix(s.said.line(), refused)
	if !found {
		return fmt.Errorf("start the sandbox: its keeper ended: %s", s.said.line())
	}
	return refusal(reason)
}

// start starts the keeper.
func (s *Sandbox) start(l launch) error {
	told, err := writeLaunch(l)
	if err != nil {
		return err
	}
	defer told.Close()
	uplink, err := os.OpenFile(l.Sockets, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open the sandbox's sockets: %w", err)
	}
	defer uplink.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	s.control = ours
	streams, err := s.streams(l.TTY)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range streams {
			_ = f.Close()
		}
	}()
	cmd := &exec.Cmd{Path: l.Binary, Args: []string{keeperName}, Env: []string{}, Dir: "/", Stderr: s.said,
		ExtraFiles: append([]*os.File{told, theirs}, append(streams, uplink)...)}
	// A session of its own: nothing of the sandbox has this terminal, or gets its signals.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC,
		AmbientCaps: setUpCaps(),
	}
	if !l.Map {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: l.UID, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: l.GID, Size: 1}}
		// Root's groups are not the sandbox's, unless this is a namespace that does not let go of any.
		free := setting("/proc/self/setgroups") != "deny"
		cmd.SysProcAttr.GidMappingsEnableSetgroups = free
		cmd.SysProcAttr.Credential = &syscall.Credential{NoSetGroups: !free}
	}
	if s.cgroup, s.Unenforced = makeCgroup(l.Config); s.cgroup != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(s.cgroup.dir.Fd())
	}
	if err := s.run(cmd); err != nil {
		return startRefusal(err)
	}
	go s.listen()
	return nil
}

// run starts the keeper, and waits for its end. The kernel kills it with the thread that started it, which is kept.
func (s *Sandbox) run(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		err := cmd.Start()
		if err == nil {
			s.keeper = cmd.Process
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(s.gone)
		}
	}()
	err := <-started
	if err != nil {
		close(s.gone)
	}
	return err
}

// streams makes the command's streams, and returns the sandbox's ends: three files, whatever they are.
func (s *Sandbox) streams(tty bool) (theirs []*os.File, err error) {
	if tty {
		for range 3 {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return theirs, err
			}
			theirs = append(theirs, null)
		}
		return theirs, nil
	}
	// Pipes, and not this process's own files: a sandbox could open those again, for writing too.
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("make the streams of the sandbox: %w", err)
		}
		switch i {
		case 0:
			s.Stdin, theirs = w, append(theirs, r)
		case 1:
			s.Stdout, theirs = r, append(theirs, w)
		case 2:
			s.Stderr, theirs = r, append(theirs, w)
		}
	}
	return theirs, nil
}

// listen reads what the init says until it has ended.
func (s *Sandbox) listen() {
	exit := Exit{Code: 128 + int(syscall.SIGKILL), Killed: true} // unless it says otherwise
	begun := false
	defer func() {
		<-s.gone
		if !begun {
			s.began <- s.lost()
		}
		s.ended <- exit
	}()
	buf, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := s.control.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			return
		}
		var m message
		if json.Unmarshal(buf[:n], &m) != nil {
			return
		}
		switch m.Kind {
		case "sealed":
			s.sealed <- sealing{terminal: received(oob[:oobn])}
		case "refused":
			s.sealed <- sealing{err: refusal(m.Reason)}
		case "began":
			begun = true
			s.began <- nil
		case "failed":
			begun = true
			s.began <- &CommandError{s.command, m.Code, m.Reason}
			exit = Exit{Code: m.Code}
		case "ended":
			exit = Exit{Code: m.Code}
		}
	}
}

// received returns the file that came with a message, or nil.
func received(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "terminal of the sandbox")
}

// Begin begins the command. The error is a [CommandError] if it cannot be executed.
func (s *Sandbox) Begin() error {
	if err := s.tell(message{Kind: "begin"}); err != nil {
		return fmt.Errorf("begin the command: %w", err)
	}
	return <-s.began
}

// Signal sends the command a signal. SIGKILL ends all of the sandbox.
func (s *Sandbox) Signal(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		_ = s.keeper.Kill()
		return
	}
	_ = s.tell(message{Kind: "signal", Signal: int(sig)})
}

// Resize sets the size of the command's terminal, in characters.
func (s *Sandbox) Resize(height, width uint) error {
	//nolint:gosec // a terminal's size is two such numbers
	size := unix.Winsize{Row: uint16(height), Col: uint16(width)}
	raw, err := s.Terminal.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	return errors.Join(err, set)
}

// Ended receives the command's exit, when no process of the sandbox is left.
func (s *Sandbox) Ended() <-chan Exit { return s.ended }

// OutOfMemory reports whether the kernel has killed a process of the sandbox because of its limit.
func (s *Sandbox) OutOfMemory() bool { return s.cgroup.outOfMemory() }

// Close ends the sandbox, and returns when nothing of it is left.
func (s *Sandbox) Close() {
	if s.keeper != nil {
		_ = s.keeper.Kill()
		<-s.gone
	}
	if s.control != nil {
		_ = s.control.Close()
	}
	s.cgroup.remove()
}

func (s *Sandbox) tell(m message) error { return send(s.control, m, -1) }

// send sends a message, with a descriptor unless that is negative.
func send(to *net.UnixConn, m message, fd int) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	_, _, err = to.WriteMsgUnix(data, oob, nil)
	return err
}

// socketPair returns a socket for this process and its other end, of which messages keep their bounds.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the sandbox's control socket: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "control")
	if ours, err = connOf(os.NewFile(uintptr(fds[0]), "control")); err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("make the sandbox's control socket: %w", err)
	}
	return ours, theirs, nil
}

// connOf returns the socket of a file, which it closes.
func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("it is no unix socket")
	}
	return unixConn, nil
}

// setUpCaps are the capabilities with which the keeper and the init set up what is theirs. They are of namespaces that
// have just been made, and are dropped before anything else runs.
func setUpCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SETGID,
		unix.CAP_SETFCAP}
}

// tail keeps the beginning of what a process says on standard error.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const maxTail = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[:min(len(p), maxTail-len(t.data))]...)
	return len(p), nil
}

// line returns what was said as one line.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(bytes.Fields(t.data), []byte(" ")))
}
