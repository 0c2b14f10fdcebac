package gateway

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// In whatever order names are looked up, each keeps its address, no two have the
// same one, and no other address has a name.
func FuzzNames(f *testing.F) {
	f.Add([]byte("a.b.a.c.b"), uint8(2))
	f.Add([]byte("aa.ab.ac.ad.ae.af.aa"), uint8(3))
	f.Add([]byte("..x"), uint8(0))
	f.Fuzz(func(t *testing.T, asked []byte, room uint8) {
		n := newNames()
		n.room = int(room)
		given := map[string]netip.Addr{}
		refused := int64(0)
		for word := range bytes.SplitSeq(asked, []byte(".")) {
			name := string(word)
			addr, err := n.address(name)
			old, known := given[name]
			switch {
			case known && (err != nil || addr != old):
				t.Fatalf("%q had %s and has %s, %v", name, old, addr, err)
			case known:
			case len(given) == int(room):
				refused++
				if !errors.Is(err, errTableFull) {
					t.Fatalf("%q in a full table: %s, %v", name, addr, err)
				}
			case err != nil:
				t.Fatalf("%q: %v with %d of %d names", name, err, len(given), room)
			default:
				given[name] = addr
			}
		}
		if n.refused.Load() != refused {
			t.Errorf("%d refusals counted of %d", n.refused.Load(), refused)
		}
		byAddr := map[netip.Addr]string{}
		for name, addr := range given {
			if other, taken := byAddr[addr]; taken {
				t.Errorf("%q and %q have the address %s", name, other, addr)
			}
			byAddr[addr] = name
			if got, ok := n.name(addr); !ok || got != name {
				t.Errorf("name(%s) = %q, %v, want %q", addr, got, ok, name)
			}
		}
		for _, addr := range []netip.Addr{firstFake.Prev(), netip.MustParseAddr(source), next(firstFake, len(given))} {
			if got, ok := n.name(addr); ok {
				t.Errorf("name(%s) = %q, an address of no name", addr, got)
			}
		}
	})
}

func next(addr netip.Addr, steps int) netip.Addr {
	for range steps {
		addr = addr.Next()
	}
	return addr
}

// However a connection is cut into pieces, each whole query has the answer that
// it would have alone, in order, until the first message that is no query.
func FuzzDNSOverTCP(f *testing.F) {
	framed := func(queries ...[]byte) (all []byte) {
		for _, q := range queries {
			all = append(binary.BigEndian.AppendUint16(all, uint16(len(q))), q...)
		}
		return all
	}
	a, b := query(f, "a.example.", dnsmessage.TypeA), query(f, "b.example.", dnsmessage.TypeAAAA)
	f.Add(framed(a, b, a), uint8(0))
	f.Add(framed(a, nil, b), uint8(7))
	f.Add(append(framed(a), 0xff, 0xff, 0), uint8(30))
	f.Add(framed(b)[:20], uint8(3))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		var want []byte
		model := newNames()
		for rest := sent; len(rest) >= 2; {
			size := int(binary.BigEndian.Uint16(rest))
			if size > maxQuery || len(rest) < 2+size {
				break
			}
			reply := model.answer(rest[2 : 2+size])
			if reply == nil {
				break
			}
			want = append(want, framed(reply)...)
			rest = rest[2+size:]
		}
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			(&resolver{names: newNames()}).serveStream(server)
		}()
		go func() {
			for left := sent; len(left) > 0; {
				n := min(len(left), int(piece)+1)
				if _, err := client.Write(left[:n]); err != nil {
					return // the resolver has ended the connection: rightly, if the answers are right
				}
				left = left[n:]
			}
		}()
		got := make([]byte, len(want))
		if n, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x, %v, want %x", got[:n], err, want)
		}
		_ = client.Close()
	})
}

// Whatever the kernel reports as the destination, the proxy is sent one CONNECT,
// for a name of the table or for the address itself.
func FuzzAuthority(f *testing.F) {
	f.Add([]byte{2, 0, 1, 0xbb, 198, 18, 0, 1}, "a.example.")
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1}, "b.example.")
	f.Add([]byte{2, 0, 0, 0, 198, 18, 0, 1}, "x y\r\n.")
	f.Add([]byte{10, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "1.2.3.4.")
	f.Fuzz(func(t *testing.T, raw []byte, asked string) {
		var sockaddr unix.IPv6Mreq
		copy(sockaddr.Multiaddr[:], raw)
		to := fromSockaddr(sockaddr.Multiaddr)
		n := newNames()
		plain, ok := plainName(asked)
		if ok {
			must.Get(n.address(plain))(t)
		}
		authority, some := n.authority(to)
		if some == (to.Addr().IsLoopback() || to.Port() == 0) {
			t.Fatalf("authority(%s) = %q, %v", to, authority, some)
		}
		if !some {
			return
		}
		if want := to.String(); !ok || to.Addr() != firstFake {
			if authority != want {
				t.Fatalf("authority(%s) = %q", to, authority)
			}
		} else if name, port, _ := strings.Cut(authority, ":"); name != plain || port == "" {
			t.Fatalf("authority(%s) = %q, want the name %q", to, authority, plain)
		}
		head := "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"
		r := bufio.NewReader(strings.NewReader(head))
		req, err := http.ReadRequest(r)
		switch {
		case err != nil:
			t.Errorf("%q: %v", head, err)
		case req.Method != http.MethodConnect || req.URL.Host != authority || req.Host != authority,
			len(req.Header) != 0, r.Buffered() != 0:
			t.Errorf("%q is read as %+v", head, req)
		}
	})
}

// Whatever arrives from the proxy's socket, in whatever pieces, connect accepts
// nothing but a whole head with the status 200, and loses no byte after it.
func FuzzConnect(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nrest"), uint8(1))
	f.Add([]byte("HTTP/1.1 403 Forbidden\r\n\r\n"), uint8(3))
	f.Add([]byte("HTTP/1.1 200\r\n\r\n\r\n\r\n"), uint8(200))
	f.Add([]byte("HTTP/1.1 200 OK\r\n"+strings.Repeat("X: y\r\n", 900)+"\r\n"), uint8(255))
	f.Fuzz(func(t *testing.T, said []byte, piece uint8) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			request := make([]byte, len("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"))
			if _, err := io.ReadFull(theirs, request); err != nil {
				return
			}
			for left := said; len(left) > 0; {
				n := min(len(left), int(piece)+1)
				if _, err := theirs.Write(left[:n]); err != nil {
					return
				}
				left = left[n:]
			}
		}()
		rest, ok := connect(ours, "a:1")
		head, after, whole := bytes.Cut(said, []byte("\r\n\r\n"))
		if !ok {
			if whole && isOK(head) && len(head) < maxHead/2 {
				t.Errorf("%q was refused", said)
			}
			_ = ours.Close()
			return
		}
		more, err := io.ReadAll(ours)
		if got := append(rest, more...); !whole || !isOK(head) || err != nil || !bytes.Equal(got, after) {
			t.Errorf("%q gave the rest %q, %v, want %q", said, got, err, after)
		}
	})
}

// The gateway serves only after the kernel has confirmed that no privilege is
// left.
func TestAThreadThatKeptAPrivilegeIsNamed(t *testing.T) {
	const dropped = "Name:\taileron\nUid:\t7\t7\t7\t7\nGid:\t7\t7\t7\t7\nGroups:\t\n" +
		"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
	want := func() map[string]string {
		want := unprivileged()
		want["Uid"], want["Gid"], want["Groups"] = "7 7 7 7", "7 7 7 7", ""
		return want
	}
	if err := checkThread(dropped, want()); err != nil {
		t.Errorf("all is dropped: %v", err)
	}
	for was, kept := range map[string]string{
		"Uid:\t7\t7\t7\t7": "Uid:\t7\t0\t7\t7", "Gid:\t7\t7\t7\t7": "Gid:\t7\t7\t0\t7", "Groups:\t": "Groups:\t27 ",
		"CapInh:\t0000000000000000": "CapInh:\t0000000000000400", "CapPrm:\t0000000000000000": "CapPrm:\t0000000000001000",
		"CapEff:\t0000000000000000": "CapEff:\t0000000000001000", "CapBnd:\t0000000000000000": "CapBnd:\t000001ffffffffff",
		"CapAmb:\t0000000000000000": "CapAmb:\t0000000000001000", "NoNewPrivs:\t1": "NoNewPrivs:\t0",
	} {
		name, _, _ := strings.Cut(was, ":")
		err := checkThread(strings.Replace(dropped, was, kept, 1), want())
		if err == nil || !strings.HasPrefix(err.Error(), name+" is ") {
			t.Errorf("%q: %v, want an error that names %s", kept, err, name)
		}
		err = checkThread(strings.Replace(dropped, was+"\n", "", 1), want())
		if err == nil || err.Error() != name+" is missing" {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// setWall returns t as if the wall clock had been set by d since, and the
// monotonic one had gone on: seconds of a wall reading begin at bit 30.
func setWall(t time.Time, d time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall -= uint64(d/time.Second) << 30
	return t
}

// The wall clock may be set while a connection is open. Set a day ahead, it makes
// no connection idle; set a day back, it keeps none alive.
func TestActivityIsMeasuredByTheMonotonicClock(t *testing.T) {
	for _, set := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		a := &activity{began: setWall(time.Now(), set)}
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v: idle for %v", set, idle)
		}
		a.mark()
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v before bytes moved: idle for %v", set, idle)
		}
	}
}
