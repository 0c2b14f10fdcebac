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

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
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
			if _, err := n.address(plain); err != nil {
				t.Fatal(err)
			}
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
