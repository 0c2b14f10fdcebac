package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/uplink"
)

// Addresses of the Pod, of its node, and of what is behind the node.
const (
	podAddr  = "10.244.0.2"
	nodeAddr = "10.244.0.1"
	apiAddr  = "10.96.0.1"
	internet = "1.1.1.1"
)

const testKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// pod is a network namespace as a Pod has it: a device that leads to the node, which is the namespace of this process.
type pod struct {
	t  *testing.T
	ns *os.File
}

// inPod runs claim on a node of its own that has one Pod.
func inPod(t *testing.T, claim func(*testing.T, *pod)) {
	t.Helper()
	if os.Getenv(inside) == "" {
		harness.TestApart(t, inside+"="+binary(t), syscall.CLONE_NEWNET)
		return
	}
	p := &pod{t: t}
	must.Get(harness.Loopback(netip.MustParseAddr(internet), netip.MustParseAddr(apiAddr)))(t)
	made := make(chan error, 1)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			p.ns, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	must.Do(t, <-made)
	t.Cleanup(func() { _ = p.ns.Close() })
	must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "node0"}, PeerName: "eth0"}))
	must.Do(t, netlink.LinkSetNsFd(must.Get(netlink.LinkByName("eth0"))(t), int(p.ns.Fd())))
	up := func(name, addr string) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if addr != "" {
			a, err := netlink.ParseAddr(addr)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, a); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(link)
	}
	must.Do(t, up("node0", nodeAddr+"/24"))
	p.do(0, func() error {
		err := errors.Join(up("lo", ""), up("eth0", podAddr+"/24"))
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(nodeAddr)})
		}
		return errors.Join(err, os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0))
	})
	claim(t, p)
}

// do runs f in the Pod's network, as a user.
func (p *pod) do(uid int, f func() error) {
	p.t.Helper()
	must.Do(p.t, p.try(uid, f))
}

// try is do, and returns f's error.
func (p *pod) try(uid int, f func() error) error {
	ended := make(chan error, 1)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			ended <- err
			return
		}
		keep := ^uintptr(0)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uintptr(uid), keep); errno != 0 {
			ended <- errno
			return
		}
		ended <- f()
	}()
	return <-ended
}

// start starts the gateway in the Pod as a user, and returns its output.
func (p *pod) start(uid uint32, env ...string) (cmd *exec.Cmd, stdout *bufio.Reader, stderr *logged) {
	p.t.Helper()
	return p.startIn(must.ShortDir(p.t), uid, env...)
}

// startIn starts the gateway with the sockets of a directory.
func (p *pod) startIn(dir string, uid uint32, env ...string) (cmd *exec.Cmd, stdout *bufio.Reader, stderr *logged) {
	p.t.Helper()
	stderr = &logged{}
	cmd = exec.Command(os.Getenv(inside), filepath.Join(dir, "proxy.sock"), filepath.Join(dir, "redirect.sock"))
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out := must.Get(cmd.StdoutPipe())(p.t)
	p.do(0, cmd.Start)
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out), stderr
}

// ready waits until a gateway is.
func ready(t *testing.T, stdout *bufio.Reader, stderr *logged) {
	t.Helper()
	line := make(chan string, 1)
	go func() { s, _ := stdout.ReadString('\n'); line <- s }()
	select {
	case s := <-line:
		if s != "ready\n" {
			t.Fatalf("it printed %q and %s", s, stderr)
		}
	case <-time.After(patience):
		t.Fatalf("it is not ready: %s", stderr)
	}
}

// dial connects from the Pod as a user.
func (p *pod) dial(uid int, network, to string) (conn net.Conn, err error) {
	err = p.try(uid, func() error {
		ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Second)
		defer cancel()
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, to)
		return err
	})
	if err == nil {
		p.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// lookup asks the stub for a name.
func (p *pod) lookup(name string) netip.Addr {
	p.t.Helper()
	conn := must.Get(p.dial(1000, "udp4", "127.0.0.1:53"))(p.t)
	_ = conn.SetDeadline(time.Now().Add(patience))
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	must.Get(conn.Write(must.Get(q.Pack())(p.t)))(p.t)
	buf := make([]byte, 512)
	n := must.Get(conn.Read(buf))(p.t)
	var m dnsmessage.Message
	must.Do(p.t, m.Unpack(buf[:n]))
	if len(m.Answers) != 1 {
		p.t.Fatalf("%s has the answers %v", name, m.Answers)
	}
	return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
}

// logged is what a process has written.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// serve accepts connections on the node and sends what comes on them to the channel that it returns.
func serve(t *testing.T, network, at string) <-chan string {
	t.Helper()
	got := make(chan string, 64)
	if strings.HasPrefix(network, "udp") {
		conn := must.Get(net.ListenPacket(network, at))(t)
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			buf := make([]byte, 512)
			for {
				n, from, err := conn.ReadFrom(buf)
				if err != nil {
					return
				}
				got <- string(buf[:n])
				_, _ = conn.WriteTo([]byte("pong"), from)
			}
		}()
		return got
	}
	l := must.Get(net.Listen(network, at))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			got <- "connection"
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return got
}

// fence is what stands in for a NetworkPolicy without egress: packet rules on the node's end of the Pod's device, which
// let the Pod answer and nothing more, but for a port of the node where one is open. It returns what removes them.
func fence(t *testing.T, open uint16) (remove func()) {
	t.Helper()
	c := must.Get(nftables.New())(t)
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "policy"})
	for hook, name := range map[*nftables.ChainHook]string{
		nftables.ChainHookInput: "input", nftables.ChainHookForward: "forward",
	} {
		chain := c.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook,
			Priority: nftables.ChainPriorityFilter})
		device := make([]byte, unix.IFNAMSIZ)
		copy(device, "node0")
		if open != 0 {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{byte(open >> 8), byte(open)}},
				&expr.Verdict{Kind: expr.VerdictAccept},
			}})
		}
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: device},
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
				Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	must.Do(t, c.Flush())
	return func() {
		c.DelTable(table)
		must.Do(t, c.Flush())
	}
}

// A relay runs as an ordinary user from its start, beside a fence that is not there yet.
func TestARelayIsNotReadyBeforeItsFenceHolds(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		serve(t, "tcp", internet+":443")
		serve(t, "tcp", apiAddr+":443")
		serve(t, "udp", "10.244.0.1:53")
		public := must.ShortDir(t)
		must.Do(t, os.Chmod(public, 0o777))
		env := []string{"UPLINK_KEY=" + testKey, "PUBLIC=" + public, "AGAIN=100ms",
			"KUBERNETES_SERVICE_HOST=" + apiAddr, "KUBERNETES_SERVICE_PORT=443", "AILERON_NODE_IP=" + nodeAddr}
		relay, stdout, stderr := p.start(65532, env...)
		for _, want := range []string{"the internet (tcp 1.1.1.1:443) accepted a connection",
			"the API server (tcp 10.96.0.1:443) accepted a connection",
			"the kubelet (tcp 10.244.0.1:10250) refused a connection"} {
			harness.WaitFor(t, want, func() bool { return strings.Contains(stderr.String(), want) })
		}
		check := func(patience string) error {
			c, _, _ := p.start(65532, append(env, "CHECK="+patience)...)
			return c.Wait()
		}
		if check("300ms") == nil {
			t.Error("a relay whose fence is open is ready")
		}
		down := fence(t, 0)
		ready(t, stdout, stderr)
		if err := check("none"); err != nil {
			t.Errorf("a relay that is ready: %v", err)
		}
		plane := must.Get(uplink.Dial(uplink.Config{Key: must.Get(uplink.ParseKey(testKey))(t), Address: podAddr + ":8443",
			Files: map[string][]byte{"ca.pem": []byte("root")}}))(t)
		defer plane.Close()
		b := &box{t: t, answer: "HTTP/1.1 200 OK\r\n\r\n", targets: make(chan string, 64)}
		go acceptAll(plane.Redirect, b.connected)
		go acceptAll(plane.Proxy, echo)

		for _, port := range []string{"443", "80"} {
			conn := must.Get(p.dial(1000, "tcp4", net.JoinHostPort(p.lookup("example.test").String(), port)))(t)
			must.Do(t, exchange(conn, strings.Repeat("hello ", 100_000)))
			if got := <-b.targets; got != "example.test:"+port {
				t.Errorf("port %s became CONNECT %s", port, got)
			}
		}
		conn := must.Get(p.dial(1000, "tcp4", "127.0.0.1:3128"))(t)
		must.Do(t, exchange(conn, "explicit"))
		if got := string(must.Get(os.ReadFile(filepath.Join(public, "ca.pem")))(t)); got != "root" {
			t.Errorf("the sandbox reads the CA %q", got)
		}
		// Nothing but names has a way: an address that has none, and the Pod's own.
		for _, to := range []string{"127.99.0.1:443", podAddr + ":443"} {
			if conn, err := p.dial(1000, "tcp4", to); err == nil {
				if err := exchange(conn, "x"); err == nil || isTimeout(err) {
					t.Errorf("%s: %v, want its end", to, err)
				}
			}
		}
		if conn, err := net.DialTimeout("tcp", podAddr+":443", time.Second); err == nil {
			if err := exchange(conn, "x"); err == nil || isTimeout(err) {
				t.Errorf("the Pod's own address, from outside: %v, want its end", err)
			}
			_ = conn.Close()
		}

		down()
		if err := relay.Wait(); err == nil || !strings.Contains(stderr.String(), "the fence has fallen: ") {
			t.Errorf("a relay whose fence has fallen ended with %v: %s", err, stderr)
		}
		if err := exchange(conn, "explicit"); err == nil || isTimeout(err) {
			t.Errorf("a connection through it: %v, want its end", err)
		}
	})
}

func acceptAll(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// The plane's metrics are on another port of an address that the sandbox may answer.
func TestAPlaneThatTheSandboxReachesIsRefused(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		l := must.Get(net.Listen("tcp", nodeAddr+":0"))(t)
		defer l.Close()
		port := uint16(l.Addr().(*net.TCPAddr).Port)
		remove := fence(t, port)
		_, stdout, stderr := p.start(65532, "UPLINK_KEY="+testKey)
		ready(t, stdout, stderr)
		log := &logged{}
		plane := must.Get(uplink.Dial(uplink.Config{Key: must.Get(uplink.ParseKey(testKey))(t), Address: podAddr + ":8443",
			Ports: []uint16{port}}))(t)
		defer plane.Close()
		want := fmt.Sprintf("the plane (tcp %s:%d) accepted a connection", nodeAddr, port)
		harness.WaitFor(t, want, func() bool { return strings.Contains(stderr.String(), want) })
		if plane.Connected() {
			t.Errorf("it is used: %s", log)
		}
		remove()
		defer fence(t, 0)()
		harness.WaitFor(t, "the plane to be used behind a fence", plane.Connected)
	})
}

// Where the plane listens, its port is the one hole of the fence.
func TestARelayConnectsToAPlaneThatListens(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		key := must.Get(uplink.ParseKey(testKey))(t)
		plane := must.Get(uplink.Listen(uplink.Config{Key: key, Address: nodeAddr + ":0"}))(t)
		defer plane.Close()
		b := &box{t: t, answer: "HTTP/1.1 200 OK\r\n\r\n", targets: make(chan string, 64)}
		go acceptAll(plane.Redirect, b.connected)
		at := plane.Redirect.Addr().(*net.TCPAddr)
		fence(t, uint16(at.Port))
		_, stdout, stderr := p.start(65532, "UPLINK_KEY="+testKey, "UPLINK_DIAL="+at.String())
		ready(t, stdout, stderr)
		conn := must.Get(p.dial(1000, "tcp4", p.lookup("example.test").String()+":443"))(t)
		must.Do(t, exchange(conn, "hello"))
		if got := <-b.targets; got != "example.test:443" {
			t.Errorf("it became CONNECT %s", got)
		}
	})
}

// In a Pod the gateway seals a network that has a device, and the proxy's user alone may use it.
func TestAPodIsSealedForAllButThePlane(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		const agent, plane = 1000, 65533
		web := serve(t, "tcp", internet+":443")
		dns := serve(t, "udp", internet+":53")
		quic := serve(t, "udp", internet+":443")
		b := &box{t: t, dir: must.ShortDir(t), answer: "HTTP/1.1 200 OK\r\n\r\n", targets: make(chan string, 64)}
		must.Do(t, os.Chmod(b.dir, 0o711))
		b.listen("proxy.sock", echo)
		b.listen("redirect.sock", b.connected)
		_, stdout, stderr := p.startIn(b.dir, 0, "POD=1")
		ready(t, stdout, stderr)
		c, _, checked := p.start(0, "POD=1", "CHECK=1")
		if err := c.Wait(); err != nil {
			t.Errorf("its check: %v, %s", err, checked)
		}

		// The plane: what it sends arrives.
		for _, to := range []struct {
			network, port string
			got           <-chan string
		}{{"tcp4", "443", web}, {"udp4", "53", dns}, {"udp4", "443", quic}} {
			conn := must.Get(p.dial(plane, to.network, internet+":"+to.port))(t)
			must.Get(io.WriteString(conn, "ping"))(t)
			select {
			case <-to.got:
			case <-time.After(patience):
				t.Errorf("%s to port %s from the plane did not arrive", to.network, to.port)
			}
		}
		left := must.Get(harness.WatchPackets())(t)
		defer left.Close()
		// The agent: TCP ends at the proxy, names at the stub, and all else fails at once.
		conn := must.Get(p.dial(agent, "tcp4", internet+":443"))(t)
		must.Do(t, exchange(conn, "hello"))
		if got := <-b.targets; got != internet+":443" {
			t.Errorf("it became CONNECT %s", got)
		}
		conn = must.Get(p.dial(agent, "tcp4", p.lookup("example.test").String()+":22"))(t)
		must.Do(t, exchange(conn, "hello"))
		if got := <-b.targets; got != "example.test:22" {
			t.Errorf("it became CONNECT %s", got)
		}
		for _, c := range []struct{ network, to string }{
			{"udp4", internet + ":443"}, {"udp4", "169.254.169.254:80"}, {"udp4", nodeAddr + ":9"},
			{"tcp6", "[2001:db8::1]:443"}, {"udp6", "[2001:db8::1]:53"}, {"ip4:icmp", internet},
		} {
			err := p.try(agent, func() error { return send(c.network, c.to) })
			if err == nil || isTimeout(err) {
				t.Errorf("%s to %s: %v, want a refusal at once", c.network, c.to, err)
			}
		}
		// A socket that is bound to the device is redirected too, and never leaves by it.
		err := p.try(agent, func() error {
			d := net.Dialer{Timeout: time.Second, Control: func(_, _ string, c syscall.RawConn) error {
				var err error
				return errors.Join(c.Control(func(fd uintptr) {
					err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "eth0")
				}), err)
			}}
			for _, to := range []string{internet + ":443", "127.0.0.1:443"} {
				if conn, err := d.Dial("tcp4", to); err == nil {
					_, _ = io.WriteString(conn, "bound")
					_ = conn.Close()
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		// A client from outside, for which a server of the sandbox is to answer, gets nothing.
		var own net.Listener
		p.do(agent, func() (err error) { own, err = net.Listen("tcp4", ":8080"); return err })
		defer own.Close()
		if conn, err := net.DialTimeout("tcp", podAddr+":8080", time.Second); err == nil {
			t.Errorf("a server of the sandbox is reached from %s", conn.LocalAddr())
		}
		for _, packet := range must.Get(left.Take())(t) {
			if packet.From.Addr() == netip.MustParseAddr(podAddr) {
				t.Errorf("a packet of the sandbox left: %s from %s", packet, packet.From)
			}
		}
	})
}

// With hostNetwork, or beside a bridge, the rules would cut the node off.
func TestANodesNetworkIsNotSealed(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.do(0, func() error {
			return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "cni0"}})
		})
		cmd, _, stderr := p.start(0, "POD=1")
		want := "set up the network: this is the network of a node, and not that of a Pod"
		if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), want) {
			t.Errorf("it ended with %v and printed %s, want %q", err, stderr, want)
		}
	})
}
