package pgserver

import (
	"os"
	"os/exec"
	"syscall"
)

// drop makes a command of root run in a user namespace in which this user is another one. Its files stay this user's.
func drop(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 {
		const another = 65534
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: another, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: another, HostID: 0, Size: 1}}
	}
}
