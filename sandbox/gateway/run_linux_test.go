package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/peer"
)

func TestNoThreadKeepsAPrivilege(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for range 50 { // threads come with work
			must.Do(t, exchange(b.dial("192.0.2.1:443"), "hello"))
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
		must.Do(t, exchange(open, "hello"))
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
			must.Do(t, netlink.LinkSetUp(veth))
		}, "", "gateway: set up the network: the network namespace has the device way-out"},
		{"a taken port", func(t *testing.T) {
			must.Get(harness.Loopback())(t)
			l := must.Get(net.Listen("tcp", "127.0.0.1:3128"))(t)
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
			must.Do(t, exchange(conn, "hello"))
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

// An agent opens five thousand connections and keeps them. As many as there is
// room for are served, and each of the others is closed at once. When they are
// gone, service is as before.
func TestMoreConnectionsThanThereIsRoomFor(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: opens five thousand connections")
	}
	const served, many = 4096, 5000
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		t.Logf("resident at rest: %s", status(t, b, "VmRSS"))
		targets := []string{b.address("example.test").String() + ":443", "127.0.0.1:3128"}
		conns, errs := make(chan net.Conn, many), make(chan error, many)
		refused := atomic.Int64{}
		var running sync.WaitGroup
		turns := make(chan struct{}, 128)
		for i := range many {
			turns <- struct{}{}
			running.Go(func() {
				defer func() { <-turns }()
				conn, err := net.DialTimeout("tcp", targets[i%2], patience)
				if err != nil {
					errs <- err
					return
				}
				_ = conn.SetDeadline(time.Now().Add(patience))
				switch err := exchange(conn, "hello "+strconv.Itoa(i)); {
				case err == nil:
					conns <- conn
				case isTimeout(err):
					errs <- err
				default:
					refused.Add(1)
					_ = conn.Close()
				}
			})
		}
		running.Wait()
		close(conns)
		t.Logf("resident with %d open connections: %s", len(conns), status(t, b, "VmRSS"))
		close(errs)
		for err := range errs {
			t.Fatalf("%d connections were neither served nor refused, the first: %v", len(errs)+1, err)
		}
		if len(conns) != served || refused.Load() != many-served {
			t.Errorf("%d served and %d refused, want %d and %d", len(conns), refused.Load(), served, many-served)
		}
		for conn := range conns {
			if err := exchange(conn, "still here"); err != nil {
				t.Fatalf("a connection that was served: %v", err)
			}
			_ = conn.Close()
		}
		harness.WaitFor(t, "service after the flood", func() bool { // when the gateway has noticed the ends
			return exchange(b.dial("127.0.0.1:3128"), "hello") == nil
		})
		t.Logf("resident after them: %s", status(t, b, "VmRSS"))
	})
}

// status returns a line of the gateway's /proc/PID/status.
func status(t *testing.T, b *box, key string) string {
	t.Helper()
	data := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", b.gateway.Process.Pid)))(t)
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s", key)
	return ""
}

func TestAFloodEndsItself(t *testing.T) {
	const room, flood = 50, 10_000
	sealed(t, func(t *testing.T, b *box) {
		b.start("CONNECTIONS=" + strconv.Itoa(room))
		var held []net.Conn
		for range room {
			conn := b.dial("192.0.2.1:443")
			must.Do(t, exchange(conn, "hello"))
			held = append(held, conn)
		}
		for range flood {
			conn := must.Get(net.DialTimeout("tcp", "192.0.2.1:443", patience))(t)
			_ = conn.Close()
		}
		if err := exchange(b.dial("192.0.2.1:443"), "hello"); err == nil || isTimeout(err) {
			t.Errorf("one connection too many: %v, want it closed at once", err)
		}
		for _, conn := range held {
			if err := exchange(conn, "still here"); err != nil {
				t.Fatalf("a connection from before the flood: %v", err)
			}
		}
		if b.address("still-resolves.test"); t.Failed() {
			t.Error("the flood reached the stub")
		}
		_ = held[0].Close()
		harness.WaitFor(t, "service after the flood", func() bool { // when the gateway has noticed the end
			return exchange(b.dial("192.0.2.1:443"), "hello") == nil
		})
	})
}

// A client's half-close arrives at the proxy as a half-close, and the end of a
// client that is gone as the end of the connection, though TCP sends the same for
// both.
func TestADepartedClientIsDistinguishedFromAHalfClosedOne(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		half, done := make(chan net.Conn), make(chan struct{})
		serve := func(conn net.Conn, r io.Reader) {
			_, _ = io.ReadAll(r)
			half <- conn
			<-done
		}
		b.explicit = func(conn net.Conn) { serve(conn, conn) }
		b.redirect = func(conn net.Conn, r *bufio.Reader) { serve(conn, r) }
		b.start()
		for _, to := range []string{"127.0.0.1:3128", "192.0.2.1:80"} {
			client := b.dial(to)
			must.Get(io.WriteString(client, "all I want"))(t)
			_ = client.(*net.TCPConn).CloseWrite()
			theirs := <-half
			if peer.Gone(theirs, netip.AddrPort{}) {
				t.Errorf("%s: a half-closed client is gone", to)
			}
			if _, err := io.WriteString(theirs, "response"); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if _, err := io.ReadFull(client, make([]byte, len("response"))); err != nil {
				t.Errorf("%s: a half-closed client has no response: %v", to, err)
			}
			_ = client.Close()
			harness.WaitFor(t, to+": the end of a client that closed", func() bool {
				return peer.Gone(theirs, netip.AddrPort{})
			})
			done <- struct{}{}
		}
	})
}

// What no rule matches is dropped by policy, over IPv4 and IPv6. The rules that
// refuse it, and the lack of a route, are each enough alone as well.
func TestTheSealDropsByPolicyToo(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		c := must.Get(nftables.New())(t)
		for family, rules := range map[nftables.TableFamily]int{nftables.TableFamilyIPv4: 3, nftables.TableFamilyIPv6: 2} {
			chains := must.Get(c.ListChainsOfTableFamily(family))(t)
			found := false
			for _, chain := range chains {
				if chain.Name != "seal" {
					continue
				}
				found = true
				if chain.Policy == nil || *chain.Policy != nftables.ChainPolicyDrop {
					t.Errorf("family %v: the policy is not to drop: %+v", family, chain)
				}
				if chain.Hooknum == nil || *chain.Hooknum != *nftables.ChainHookOutput {
					t.Errorf("family %v: the chain does not see what leaves a process: %+v", family, chain)
				}
				if got, err := c.GetRules(chain.Table, chain); err != nil || len(got) != rules {
					t.Errorf("family %v: %d rules, %v; want %d, of which the last refuses", family, len(got), err, rules)
				}
			}
			if !found {
				t.Errorf("family %v has no chain of the seal", family)
			}
		}
	})
}

// RFC 6761 section 6.3.
func TestLocalhostIsTheSandboxItself(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, name := range []string{"localhost", "app.localhost", "APP.LocalHost"} {
			if at := b.address(name); at != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("%s is %s", name, at)
			}
		}
		if at := b.address("localhost.example"); at.IsLoopback() {
			t.Errorf("localhost.example is %s", at)
		}
	})
}
