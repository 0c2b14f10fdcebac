package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ALRubinger/aileron/e2e/harness"
)

func TestNoThreadKeepsAPrivilege(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for range 50 { // threads come with work
			if err := exchange(b.dial("192.0.2.1:443"), "hello"); err != nil {
				t.Fatal(err)
			}
		}
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", b.gateway.Process.Pid))
		if len(files) < 2 {
			t.Fatalf("the gateway has the threads %q, want some", files)
		}
		for _, file := range files {
			status, err := os.ReadFile(file)
			if err != nil {
				continue // it ended
			}
			for line := range strings.Lines(string(status)) {
				key, value, _ := strings.Cut(line, ":")
				value = strings.Join(strings.Fields(value), " ")
				switch {
				case strings.HasPrefix(key, "Cap") && strings.Trim(value, "0") != "",
					(key == "Uid" || key == "Gid") && value != "65532 65532 65532 65532",
					key == "Groups" && value != "",
					key == "NoNewPrivs" && value != "1":
					t.Errorf("%s: %s", file, strings.TrimSpace(line))
				}
			}
		}
	})
}

func TestAKilledGatewayEndsItsConnections(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		if line := b.launch(); line != "ready\n" {
			t.Fatalf("%q, %s", line, b.stderr)
		}
		open := b.dial("192.0.2.1:443")
		if err := exchange(open, "hello"); err != nil {
			t.Fatal(err)
		}
		_ = b.gateway.Process.Kill()
		_ = b.gateway.Wait()
		if err := exchange(open, "hello"); err == nil || isTimeout(err) {
			t.Errorf("an open connection: %v, want its end", err)
		}
		if _, err := net.DialTimeout("tcp", "192.0.2.1:443", patience); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new connection: %v, want it refused", err)
		}
		if _, err := resolver("udp", "127.0.0.53:53").LookupNetIP(t.Context(), "ip4", "example.test."); err == nil {
			t.Error("a name was resolved")
		}
	})
}

func TestFailuresNameTheStepInOneLine(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*testing.T)
		env   string
		want  string
	}{
		{"another device", func(t *testing.T) {
			veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "way-out"}, PeerName: "peer"}
			if err := netlink.LinkAdd(veth); err != nil {
				t.Skipf("no other device can be made here: %v", err)
			}
			if err := netlink.LinkSetUp(veth); err != nil {
				t.Fatal(err)
			}
		}, "", "gateway: set up the network: the network namespace has the device way-out"},
		{"a taken port", func(t *testing.T) {
			if _, err := harness.Loopback(); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:3128")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}, "", "gateway: listen: "},
		{"no proxy", nil, "NO_PROXY_SOCKETS=1", "gateway: reach the proxy's socket "},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			sealed(t, func(t *testing.T, b *box) {
				if c.spoil != nil {
					c.spoil(t)
				}
				line := b.launch(c.env)
				if line != "" {
					_ = b.gateway.Process.Kill()
				}
				err := b.gateway.Wait()
				said := b.stderr.String()
				if line != "" || err == nil || !strings.HasPrefix(said, c.want) || strings.Count(said, "\n") != 1 {
					t.Errorf("it printed %q and %q and ended with %v, want one line %q", line, said, err, c.want)
				}
			})
		})
	}
}

func TestTheGatewayEndsOnASignal(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		if line := b.launch(); line != "ready\n" {
			t.Fatalf("%q, %s", line, b.stderr)
		}
		idle, busy := b.dial("127.0.0.1:3128"), b.dial(netip.AddrPortFrom(b.address("example.test"), 443).String())
		for _, conn := range []net.Conn{idle, busy} {
			if err := exchange(conn, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		stop := context.AfterFunc(ctx, func() { _ = b.gateway.Process.Kill() })
		defer stop()
		_ = b.gateway.Process.Signal(syscall.SIGTERM)
		if err := b.gateway.Wait(); err != nil {
			t.Errorf("it ended with %v: %s", err, b.stderr)
		}
		if err := exchange(idle, "hello"); err == nil || isTimeout(err) {
			t.Errorf("an open connection: %v, want its end", err)
		}
	})
}
