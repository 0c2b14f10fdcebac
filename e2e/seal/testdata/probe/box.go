package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// descriptors are what was open when this program began.
func descriptors() {
	var found []string
	for fd := range 256 {
		to, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		// Go's own: its poller, and the limits of its cgroup.
		if err == nil && fd > 2 && !strings.HasPrefix(to, "anon_inode:[event") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			found = append(found, fmt.Sprint(fd, "=", to))
		}
	}
	said("descriptors that were inherited", fmt.Sprint(len(found), " found"), strings.Join(found, " "))
}

func identity() string {
	maps, _ := os.ReadFile("/proc/self/uid_map")
	return fmt.Sprintf("uid %d, uid_map %s", os.Getuid(), strings.Join(strings.Fields(string(maps)), " "))
}

// files tries to write where the kernel listens and to read where it talks.
func files(p plan) {
	for _, path := range []string{
		"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/net/ipv4/ping_group_range",
		"/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sys/net/ipv4/conf/all/route_localnet",
		"/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/0/smp_affinity", "/proc/bus/pci/devices",
		"/sys/kernel/uevent_helper", "/sys/class/net/lo/mtu", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/power/state", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/devices/devices.allow",
		"/etc/resolv.conf",
	} {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_ = f.Close()
		}
		tell("write to "+path, err)
	}
	for _, path := range []string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/vda", "/dev/sda",
		"/dev/nvme0n1", "/dev/dm-0", "/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/vsock", "/dev/vhost-vsock",
		"/dev/vhost-net", "/dev/uinput", "/dev/loop-control", "/dev/ppp", "/dev/mapper/control",
		"/proc/kmsg", "/sys/kernel/debug/tracing", "/sys/kernel/security/apparmor/policy"} {
		tell("open "+path, firstByte(path))
	}
	// A masked file is there and empty.
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware/dmi/tables/DMI"} {
		tell("read "+path, firstByte(path))
	}
	for i, path := range p.Paths {
		_, err := os.Stat(path)
		tell(fmt.Sprint("a path of the host's, ", i), err)
	}
	for name, mode := range map[string]uint32{"mknod of a memory device": unix.S_IFCHR, "mknod of a disk": unix.S_IFBLK} {
		dev := unix.Mkdev(1, 1)
		if mode == unix.S_IFBLK {
			dev = unix.Mkdev(8, 0)
		}
		err := unix.Mknod("device", mode|0o666, int(dev))
		_ = os.Remove("device")
		tell(name, err)
	}
	entries, _ := os.ReadDir("/dev")
	var more []string
	for _, e := range entries {
		if !slices.Contains(strings.Fields("console core fd full init mqueue null ptmx pts random shm stderr stdin stdout "+
			"tty urandom zero"), e.Name()) {
			more = append(more, e.Name())
		}
	}
	said("devices beyond the usual", fmt.Sprint(len(more), " found"), strings.Join(more, " "))
}

func firstByte(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

// privileges is what every thread of every process in the box has, and what
// setuid programs would give.
func privileges() {
	want := regexp.MustCompile(`(?m)^(CapInh|CapPrm|CapEff|CapBnd|CapAmb):\t0+$|^NoNewPrivs:\t1$|^Seccomp:\t2$`)
	statuses, _ := filepath.Glob("/proc/[0-9]*/task/*/status")
	more := 0
	var first string
	for _, path := range statuses {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if n := len(want.FindAll(data, -1)); n != 7 {
			more++
			first = path + ": " + string(data)
		}
	}
	said("threads with a capability, without the filter, or with a way to more", fmt.Sprint(more, " found"),
		fmt.Sprint("of ", len(statuses), " ", first))

	var risen []string
	tried := 0
	_ = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "/proc" || path == "/sys" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
			return nil
		}
		cmd := exec.Command(path)
		if cmd.Start() != nil {
			return nil
		}
		tried++
		// Start returns when the program has been executed.
		status, _ := os.ReadFile(fmt.Sprint("/proc/", cmd.Process.Pid, "/status"))
		uid := fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", os.Getuid(), os.Getuid(), os.Getuid(), os.Getuid())
		gid := fmt.Sprintf("Gid:\t%d\t%d\t%d\t%d\n", os.Getgid(), os.Getgid(), os.Getgid(), os.Getgid())
		if !bytes.Contains(status, []byte(uid)) || !bytes.Contains(status, []byte(gid)) {
			risen = append(risen, path)
		}
		_, _ = cmd.Process.Kill(), cmd.Wait()
		return nil
	})
	said("setuid programs that give a user", fmt.Sprint(len(risen), " of some"),
		fmt.Sprint("of ", tried, ": ", strings.Join(risen, " ")))
	for name, err := range map[string]error{
		"setuid to another user": setAnother(unix.SYS_SETRESUID), "setgid to another group": setAnother(unix.SYS_SETRESGID),
		"chown to another user": chownAnother(),
	} {
		tell(name, err)
	}
}

func setAnother(trap uintptr) error {
	const other = 4321
	if _, _, errno := unix.RawSyscall(trap, other, other, other); errno != 0 {
		return errno
	}
	return nil
}

func chownAnother() error {
	if err := os.WriteFile("owned", nil, 0o600); err != nil {
		return err
	}
	defer os.Remove("owned")
	return os.Chown("owned", 4321, 4321)
}

// processes are those that can be seen and touched.
func processes(p plan) {
	var seen []string
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		line, _ := os.ReadFile(dir + "/cmdline")
		seen = append(seen, filepath.Base(dir)+" "+strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))))
	}
	said("processes that can be seen", fmt.Sprint(len(seen), " seen"), strings.Join(seen, "\n"))
	for i, pid := range p.Processes {
		tell(fmt.Sprint("ptrace of a process of the host's, ", i), unix.PtraceAttach(pid))
		tell(fmt.Sprint("a signal to a process of the host's, ", i), unix.Kill(pid, 0))
		_, err := unix.PidfdOpen(pid, 0)
		tell(fmt.Sprint("a handle of a process of the host's, ", i), err)
	}
	// Those of the box are its own; the memory of none may be beyond it.
	for _, path := range []string{"/proc/1/root/run/aileron", "/proc/1/cwd/../../../run/aileron",
		"/proc/self/root/../run/aileron"} {
		_, err := os.Stat(path)
		tell("the gateway's files at "+path, err)
	}
}

// mounts prints each mount that is not of the kernel's own making.
func mounts() {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	var found []string
	for line := range strings.Lines(string(data)) {
		left, right, _ := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 6 || len(r) < 2 {
			continue
		}
		ro := "rw"
		if strings.HasPrefix(l[5], "ro") {
			ro = "ro"
		}
		found = append(found, l[4]+" "+r[0]+" "+ro)
	}
	said("mounts", fmt.Sprint(len(found), " seen"), strings.Join(found, "\n"))
}

// needles are what is looked for, each byte complemented: what looks for them
// must not hold them.
type needles struct {
	names  []string
	bytes  [][]byte
	begins [1 << 16]bool // of the first two bytes, as they are
}

func (n *needles) in(data []byte) (found []string) {
	for i := 0; i+1 < len(data); i++ {
		if !n.begins[uint16(data[i])<<8|uint16(data[i+1])] {
			continue
		}
	next:
		for k, needle := range n.bytes {
			if len(data)-i < len(needle) {
				continue
			}
			for j := range needle {
				if data[i+j] != ^needle[j] {
					continue next
				}
			}
			if !slices.Contains(found, n.names[k]) {
				found = append(found, n.names[k])
			}
		}
	}
	return found
}

// search reads all that the box can read: files, environments, memory.
func search(p plan) {
	n := &needles{}
	for name, coded := range p.Needles {
		b, err := base64.StdEncoding.DecodeString(coded)
		if err != nil || len(b) < 8 {
			said("the search", "bad needle "+name, "")
			return
		}
		n.names, n.bytes = append(n.names, name), append(n.bytes, b)
		n.begins[uint16(^b[0])<<8|uint16(^b[1])] = true
	}
	var found []string
	buf := make([]byte, 1<<20)
	look := func(where string, r io.Reader) int {
		const overlap = 256
		kept, total := 0, 0
		for {
			m, err := io.ReadFull(r, buf[kept:])
			total += m
			for _, name := range n.in(buf[:kept+m]) {
				if line := name + " in " + where; !slices.Contains(found, line) {
					found = append(found, line)
				}
			}
			if err != nil {
				return total
			}
			kept = copy(buf, buf[len(buf)-overlap:])
		}
	}
	count, size := 0, 0
	_ = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "/proc" || path == "/sys" || slices.Contains(p.Public, path) {
			return fs.SkipDir
		}
		look("the name of "+filepath.Dir(path), strings.NewReader(path))
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			look("the link "+path, strings.NewReader(to))
		case d.Type()&fs.ModeSocket != 0:
			found = append(found, "a socket at "+path)
		case d.Type().IsRegular():
			if f, err := os.Open(path); err == nil {
				// A device that is mounted over a file looks like one until here.
				if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
					count++
					size += look(path, f)
				}
				_ = f.Close()
			}
		}
		return nil
	})
	said("files searched", "ok", fmt.Sprintf("%d files, %d bytes", count, size))
	memory := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		for _, name := range []string{"environ", "cmdline", "mountinfo", "mounts", "net/unix", "cgroup", "comm"} {
			if f, err := os.Open(dir + "/" + name); err == nil {
				look(dir+"/"+name, f)
				_ = f.Close()
			}
		}
		memory += lookAtMemory(dir, look)
	}
	said("memory searched", "ok", fmt.Sprintf("%d bytes", memory))
	said("found", fmt.Sprint(len(found), " found"), strings.Join(found, "\n"))
}

// lookAtMemory reads what /proc lets it read of a process's memory.
func lookAtMemory(dir string, look func(string, io.Reader) int) (total int) {
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return 0
	}
	f, err := os.Open(dir + "/mem")
	if err != nil {
		return 0
	}
	defer f.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var perms string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); err != nil || perms[0] != 'r' || to-from > 512<<20 ||
			strings.Contains(line, "[v") {
			continue
		}
		total += look(dir+"/mem", io.NewSectionReader(f, from, to-from))
	}
	return total
}
