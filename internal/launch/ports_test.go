package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

func TestAPortIsParsed(t *testing.T) {
	for text, want := range map[string]Port{"3000": {3000, 3000}, "8080:80": {8080, 80}, "1:65535": {1, 65535}} {
		if got, err := ParsePort(text); err != nil || got != want {
			t.Errorf("ParsePort(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", ":1", "1:", "65536", "-1", "+1", "01", "1:2:3", "127.0.0.1:80:80", "0.0.0.0:80",
		"x",
		"80:3128", "53", "15001"} {
		if _, err := ParsePort(text); err == nil || hint.Of(err) == "" {
			t.Errorf("ParsePort(%q) = %v", text, err)
		}
	}
	if _, err := ParsePort("8080:99999"); err == nil || !strings.Contains(err.Error(), `"99999" is not a port`) {
		t.Errorf("ParsePort(8080:99999) = %v, want which part is wrong", err)
	}
}

// freePort returns a port of the loopback address on which nothing listens.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// opened opens a port that was free a moment ago, for one of the sandbox: another process may have taken it.
func opened(t *testing.T, sandbox uint16) (*ports, Port) {
	t.Helper()
	for {
		port := Port{freePort(t), sandbox}
		p, err := openPorts([]Port{port})
		if err == nil {
			return p, port
		}
		if !strings.Contains(err.Error(), "it is in use") {
			t.Fatal(err)
		}
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	free, used := freePort(t), uint16(l.Addr().(*net.TCPAddr).Port)
	_, err = openPorts([]Port{{free, 1}, {used, 80}})
	if err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("port %d of 127.0.0.1: it is in use", used)) ||
		hint.Of(err) == "" {
		t.Fatalf("openPorts = %v", err)
	}
	again, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", free))
	if err != nil {
		t.Fatalf("a port stays open: %v", err)
	}
	_ = again.Close()
}

func TestAPrivilegedPortIsNamed(t *testing.T) {
	err := portError(Port{80, 8080}, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)})
	want := "publish port 8080 of the sandbox on port 80 of 127.0.0.1: this host reserves it for privileged users " +
		"(net.ipv4.ip_unprivileged_port_start)"
	if err.Error() != want || hint.Of(err) != "choose another port of this host: --port HOST:8080" {
		t.Errorf("%v (%s), want %q", err, hint.Of(err), want)
	}
}

func TestPortsAreOnTheLoopbackAddress(t *testing.T) {
	p, _ := opened(t, 80)
	defer p.close()
	if at := p.listeners[0].Addr().(*net.TCPAddr); !at.IP.Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("it listens on %v", at)
	}
}

// tunnel is the gateway's side of published ports: it answers each request for a port.
func tunnel(t *testing.T, dir string, answer func(conn net.Conn, port uint16)) {
	t.Helper()
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		for ctx.Err() == nil {
			conn, err := net.Dial("unix", filepath.Join(dir, "ports.sock"))
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			var port [2]byte
			if _, err := io.ReadFull(conn, port[:]); err == nil {
				answer(conn, uint16(port[0])<<8|uint16(port[1]))
			}
			_ = conn.Close()
			stop()
		}
	})
}

// published serves a port, and returns what its clients get.
func published(t *testing.T, record error, answer func(conn net.Conn, port uint16)) (read string, recorded int) {
	t.Helper()
	p, port := opened(t, 3000)
	defer p.close()
	p.record = func(context.Context, uint16, uint16, string) error { recorded++; return record }
	p.report = t.Logf
	dir := t.TempDir()
	must.Do(t, p.serve(t.Context(), dir))
	tunnel(t, dir, answer)
	client, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port.Host))
	if errors.Is(err, syscall.ECONNRESET) { // refused before Dial has looked
		p.close()
		return "", recorded
	}
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, _ = client.Write([]byte("hello"))
	_ = client.(*net.TCPConn).CloseWrite()
	data, _ := io.ReadAll(client)
	p.close() // waits for what records
	return string(data), recorded
}

func TestAClientIsRecordedAndConnected(t *testing.T) {
	echo := func(conn net.Conn, port uint16) {
		_, _ = conn.Write([]byte{0})
		data, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "%d %s", port, data)
	}
	if got, n := published(t, nil, echo); got != "3000 hello" || n != 1 {
		t.Errorf("a client reads %q, with %d rows", got, n)
	}
	// No row, no connection.
	if got, n := published(t, errors.New("disk full"), echo); got != "" || n != 1 {
		t.Errorf("a client that is not recorded reads %q", got)
	}
	refuse := func(conn net.Conn, _ uint16) { _, _ = conn.Write([]byte{1}) }
	if got, _ := published(t, nil, refuse); got != "" {
		t.Errorf("a client of a port on which nothing listens reads %q", got)
	}
	tries := 0
	stale := func(conn net.Conn, port uint16) {
		if tries++; tries > 2 { // the first two went away
			echo(conn, port)
		}
	}
	if got, _ := published(t, nil, stale); got != "3000 hello" {
		t.Errorf("behind connections that have ended a client reads %q", got)
	}
}

// A process that is out of descriptors for a moment goes on with its ports.
func TestAPortStaysPublishedWhenAClientCannotBeAccepted(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	errs := []error{syscall.EMFILE, syscall.ECONNABORTED, nil, net.ErrClosed}
	next := func() (net.Conn, error) {
		err := errs[0]
		errs = errs[1:]
		return ours, err
	}
	if conn, ok := accept(t.Context(), next); !ok || conn != ours || len(errs) != 1 {
		t.Errorf("accept = %v, %t with %v left", conn, ok, errs)
	}
	if _, ok := accept(t.Context(), next); ok {
		t.Error("a closed listener accepts")
	}
}

// pipe is a connection in memory, which closes both directions at once.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }

// A published connection lives as long as something moves in one of its directions, and an hour longer.
func TestAPublishedConnectionEndsWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, published := net.Pipe()
		box, server := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			joinUntilIdle(pipe{published}, pipe{box}, portIdle)
		}()
		buf := make([]byte, 1)
		for i, way := range [][2]net.Conn{{client, server}, {server, client}, {server, client}, {client, server}} {
			<-time.After(portIdle - time.Second)
			if _, err := way[0].Write([]byte{byte(i)}); err != nil {
				t.Fatalf("after %d moves a write fails: %v", i, err)
			}
			if _, err := io.ReadFull(way[1], buf); err != nil || buf[0] != byte(i) {
				t.Fatalf("after %d moves %v arrives, %v", i, buf, err)
			}
		}
		begin := time.Now()
		<-ended
		if took := time.Since(begin); took != portIdle {
			t.Errorf("an idle connection ends after %v, want %v", took, portIdle)
		}
		for _, c := range []net.Conn{client, server} {
			if _, err := c.Read(buf); err == nil {
				t.Error("a side is open")
			}
		}
	})
}
