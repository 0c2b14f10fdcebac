package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// lookTime bounds each trial.
const lookTime = 20 * time.Second

// look tries, as what the command will be, that the gateway answers and that nothing else of the world does. It is the
// sandbox itself that is tried: no other one is assumed to be like it.
func look(l *launch) error {
	for _, t := range []struct {
		what string
		try  func(*launch) error
	}{
		{"every privilege is dropped", func(*launch) error { return gateway.CheckDropped() }},
		{"system calls are filtered", filtered},
		{"the network is another namespace's", foreignNetwork},
		{"there is no device but loopback", onlyLoopback},
		{"the network cannot be changed", unchangeable},
		{"the gateway answers", answered},
		{"nothing leaves past it", unreachable},
		{"files of the host are not there", confined},
	} {
		if err := t.try(l); err != nil {
			return fmt.Errorf("find that %s: %w", t.what, err)
		}
	}
	return nil
}

// filtered finds the filter in the kernel's account, and tries what it refuses.
func filtered(*launch) error {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "\nSeccomp:\t2\n") {
		return errors.New("the kernel has no filter for this process")
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("unshare: %w, want it refused", orNothing(err))
	}
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	if !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("a socket of AF_VSOCK: %w, want it refused", orNothing(err))
	}
	return nil
}

// foreignNetwork asks the kernel who owns the network namespace. It answers only those who have rights in that owner.
func foreignNetwork(*launch) error {
	f, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	defer f.Close()
	fd, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_USERNS)
	if err == nil {
		_ = unix.Close(fd)
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("its owner: %w, want it to be above this user namespace", orNothing(err))
	}
	return nil
}

func onlyLoopback(*launch) error {
	devices, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.Flags&net.FlagLoopback == 0 && d.Flags&net.FlagUp != 0 {
			return fmt.Errorf("there is %s", d.Name)
		}
	}
	return nil
}

// unchangeable tries to bring loopback down.
func unchangeable(*launch) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() &^ unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("loopback could be brought down: %w", orNothing(err))
	}
	return nil
}

// answered looks up a name that every sandbox knows, and connects to the gateway's port for redirected connections,
// which closes a connection that was not: the proxy sees nothing of that.
func answered(*launch) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	var d net.Dialer
	// The second address is for documentation (RFC 5737): an answer proves that what leaves ends at the gateway.
	for _, to := range [][2]string{{"udp4", "127.0.0.53:53"}, {"tcp4", "192.0.2.1:53"}} {
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, to[0], to[1])
		}}
		found, err := resolver.LookupNetIP(ctx, "ip4", "aileron.internal.")
		if err != nil {
			return err
		}
		if given := netip.MustParsePrefix("198.18.0.0/15"); len(found) != 1 || !given.Contains(found[0].Unmap()) {
			return fmt.Errorf("the name aileron.internal has the addresses %v", found)
		}
	}
	conn, err := d.DialContext(ctx, "tcp4", "127.0.0.1:15001")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lookTime))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("a connection to the gateway: %w, want its end", orNothing(err))
	}
	return nil
}

// unreachable sends to addresses for documentation, by all that is not the gateway's.
func unreachable(*launch) error {
	const far = "[2001:db8::1]:443"
	for _, to := range [][2]string{{"udp4", "192.0.2.1:443"}, {"udp6", far}, {"tcp6", far}} {
		d := net.Dialer{Timeout: lookTime}
		conn, err := d.Dial(to[0], to[1])
		if err == nil {
			_, err = conn.Write([]byte("aileron"))
			_ = conn.Close()
		}
		if err == nil || os.IsTimeout(err) {
			return fmt.Errorf("%s to %s: %w, want it refused at once", to[0], to[1], orNothing(err))
		}
	}
	return nil
}

// confined looks for what no sandbox has.
func confined(*launch) error {
	for _, at := range []string{"/etc/shadow", "/run/dbus", "/run/systemd", "/run/docker.sock", "/var/run/docker.sock",
		"/sys/kernel", hostUsr} {
		if exists(at) {
			return fmt.Errorf("there is %s", at)
		}
	}
	for _, at := range []string{"/", "/etc", "/usr", "/dev", "/proc/sys/kernel"} {
		if err := unix.Access(at, unix.W_OK); err == nil {
			return fmt.Errorf("%s can be written to", at)
		}
	}
	return nil
}

// errNothing is what was tried and did not fail.
var errNothing = errors.New("it was done")

func orNothing(err error) error {
	if err == nil {
		return errNothing
	}
	return err
}
