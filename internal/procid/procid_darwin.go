package procid

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// startOf returns the start time of a living process, in microseconds.
func startOf(pid int) (string, error) {
	const zombie = 5 // SZOMB
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	if p.Proc.P_stat == zombie {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	started := p.Proc.P_starttime
	return strconv.FormatInt(started.Sec*1e6+int64(started.Usec), 10), nil
}

// namespace returns the one that there is.
func namespace() (string, error) { return "pid:[0]", nil }
