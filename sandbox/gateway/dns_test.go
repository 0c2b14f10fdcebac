package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n := must.Get(dnsmessage.NewName(name))(t)
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed := must.Get(m.Pack())(t)
	return packed
}

func parse(t testing.TB, reply []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatalf("the answer %x cannot be read: %v", reply, err)
	}
	return m
}

func TestEachNameHasOneAddress(t *testing.T) {
	n := newNames()
	seen := map[netip.Addr]string{}
	for _, name := range []string{"a.example.", "b.example.", "A.Example.", "a.example.", "aileron.internal."} {
		m := parse(t, n.answer(query(t, name, dnsmessage.TypeA)))
		if m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 1 || m.Answers[0].Header.TTL != ttl {
			t.Fatalf("%s: %v", name, m.GoString())
		}
		addr := netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
		plain := strings.ToLower(strings.TrimSuffix(name, "."))
		if other, ok := seen[addr]; ok && other != plain {
			t.Errorf("%s and %s have the address %s", plain, other, addr)
		}
		seen[addr] = plain
		if !netip.MustParsePrefix("198.18.0.0/15").Contains(addr) {
			t.Errorf("%s is at %s, outside the block", plain, addr)
		}
		if got, ok := n.name(addr); !ok || got != plain {
			t.Errorf("name(%s) = %q, %v, want %q", addr, got, ok, plain)
		}
	}
	if len(seen) != 3 {
		t.Errorf("three names have %d addresses", len(seen))
	}
}

func TestWhatIsNoAddressIsEmpty(t *testing.T) {
	const https, svcb, loc = 65, 64, 29
	for _, kind := range []dnsmessage.Type{
		dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeSRV, dnsmessage.TypeNS, https, svcb, loc,
	} {
		n := newNames()
		m := parse(t, n.answer(query(t, "secret.exfil.example.", kind)))
		if m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 0 || len(m.Questions) != 1 {
			t.Errorf("type %v: %v, want NOERROR and nothing", kind, m.GoString())
		}
		if len(n.all) != 0 {
			t.Errorf("type %v took an address", kind)
		}
	}
}

func TestNamesThatNoAuthorityCanBeDoNotExist(t *testing.T) {
	n := newNames()
	for _, name := range []string{
		".", "-a.example.", "a-.example.", "a b.example.", "1.2.3.4.", "127.1.", "x.0x7f.",
		"ä.example.", "a@b.example.", "a\r\nhost.example.", "a/b.example.",
	} {
		m := parse(t, n.answer(query(t, name, dnsmessage.TypeA)))
		if m.RCode != dnsmessage.RCodeNameError || len(m.Answers) != 0 {
			t.Errorf("%q: %v, want NXDOMAIN", name, m.RCode)
		}
	}
	if len(n.all) != 0 {
		t.Errorf("the table has %q", n.all)
	}
}

func TestTheTableIsBounded(t *testing.T) {
	n := newNames()
	for i := range maxNames {
		addr, err := n.address(fmt.Sprintf("n%d.example", i))
		if err != nil || addr.String() == source {
			t.Fatalf("name %d: %v, %v", i, addr, err)
		}
	}
	if _, err := n.address("one-more.example"); !errors.Is(err, errTableFull) {
		t.Errorf("one more name: %v, want %v", err, errTableFull)
	}
	if m := parse(t, n.answer(query(t, "one-more.example.", dnsmessage.TypeA))); m.RCode != dnsmessage.RCodeRefused {
		t.Errorf("one more query: %v, want REFUSED", m.RCode)
	}
	if n.refused.Load() != 2 {
		t.Errorf("%d refusals counted, want 2", n.refused.Load())
	}
	if addr, err := n.address("n0.example"); err != nil || addr != firstFake {
		t.Errorf("a name that has an address lost it: %v, %v", addr, err)
	}
}

// The longest names that there are, as many as there is room for.
func TestAFullTableIsSmall(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	n := newNames()
	for i := range maxNames {
		name := fmt.Sprintf("n%061d", i) + strings.Repeat("."+strings.Repeat("x", 62), 3)
		if plain, ok := plainName(name + "."); !ok || len(plain) != 251 {
			t.Fatalf("%q is no name of 251 letters", name)
		}
		must.Get(n.address(name))(t)
	}
	used := inUse() - before
	t.Logf("%d names take %.1f MiB", len(n.all), float64(used)/(1<<20))
	if used > 16<<20 {
		t.Errorf("the table takes %d bytes, want at most 16 MiB", used)
	}
	runtime.KeepAlive(n)
}

func TestAddressesNeverGivenHaveNoName(t *testing.T) {
	n := newNames()
	must.Get(n.address("a.example"))(t)
	for _, s := range []string{
		"198.18.0.0", "198.18.0.2", "198.19.255.254", "0.0.0.0", "255.255.255.255", "::1", "::ffff:198.18.0.1",
	} {
		if name, ok := n.name(netip.MustParseAddr(s)); ok {
			t.Errorf("name(%s) = %q, want none", s, name)
		}
	}
}

func TestReverseLookups(t *testing.T) {
	n := newNames()
	_, _ = n.address("a.example")
	m := parse(t, n.answer(query(t, "1.0.18.198.in-addr.arpa.", dnsmessage.TypePTR)))
	if len(m.Answers) != 1 || m.Answers[0].Body.(*dnsmessage.PTRResource).PTR.String() != "a.example." {
		t.Errorf("%v, want a.example", m.GoString())
	}
	for _, name := range []string{
		"2.0.18.198.in-addr.arpa.", "8.8.8.8.in-addr.arpa.", "x.in-addr.arpa.", "300.0.18.198.in-addr.arpa.",
	} {
		if m := parse(t, n.answer(query(t, name, dnsmessage.TypePTR))); m.RCode != dnsmessage.RCodeNameError {
			t.Errorf("%s: %v, want NXDOMAIN", name, m.RCode)
		}
	}
}

func TestMalformedQueriesAreAnsweredAsSuch(t *testing.T) {
	n := newNames()
	good := query(t, "a.example.", dnsmessage.TypeA)
	with := func(change func([]byte) []byte) []byte { return change(append([]byte(nil), good...)) }
	const malformed = dnsmessage.RCodeFormatError
	for name, c := range map[string]struct {
		query []byte
		want  dnsmessage.RCode
	}{
		"cut in the question": {good[:len(good)-3], malformed},
		"no question":         {with(func(b []byte) []byte { b[5] = 0; return b[:12] }), malformed},
		"two questions":       {with(func(b []byte) []byte { b[5] = 2; return append(b, b[12:]...) }), malformed},
		"missing additional":  {with(func(b []byte) []byte { b[11] = 1; return b }), malformed},
		"an update":           {with(func(b []byte) []byte { b[2] |= 5 << 3; return b }), dnsmessage.RCodeNotImplemented},
		"class chaos":         {with(func(b []byte) []byte { b[len(b)-1] = 3; return b }), dnsmessage.RCodeRefused},
		"looping name":        {with(func(b []byte) []byte { return append(b[:12], 0xc0, 12, 0, 1, 0, 1) }), malformed},
	} {
		m := parse(t, n.answer(c.query))
		if m.RCode != c.want || m.ID != 7 || !m.Response {
			t.Errorf("%s: %v, want %v", name, m.GoString(), c.want)
		}
	}
	for name, q := range map[string][]byte{
		"nothing": nil, "half a header": good[:11], "an answer": with(func(b []byte) []byte { b[2] |= 0x80; return b }),
	} {
		if reply := n.answer(q); reply != nil {
			t.Errorf("%s was answered with %x", name, reply)
		}
	}
}

func TestEDNSIsAnsweredWithEDNS(t *testing.T) {
	var m dnsmessage.Message
	must.Do(t, m.Unpack(query(t, "a.example.", dnsmessage.TypeA)))
	var h dnsmessage.ResourceHeader
	must.Do(t, h.SetEDNS0(4096, 0, true))
	cookie := []dnsmessage.Option{{Code: 10, Data: []byte("cookie12")}}
	m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{Options: cookie}}}
	packed := must.Get(m.Pack())(t)
	got := parse(t, newNames().answer(packed))
	if len(got.Answers) != 1 || len(got.Additionals) != 1 {
		t.Fatalf("%v, want an address and an OPT", got.GoString())
	}
	if opt := got.Additionals[0].Header; opt.Type != dnsmessage.TypeOPT || opt.Class != udpSize {
		t.Errorf("%v, want an OPT of %d", opt.GoString(), udpSize)
	}
}

// An answer can be parsed, is for this query, fits any transport, and never
// assigns an address to a name that the proxy would refuse.
func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "a.example.", dnsmessage.TypeA))
	f.Add(query(f, "1.0.18.198.in-addr.arpa.", dnsmessage.TypePTR))
	f.Add(query(f, "x\x00y.example.", dnsmessage.TypeALL))
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0xc0, 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := newNames()
		reply := n.answer(data)
		for _, name := range n.all {
			if again, ok := plainName(name); !ok || again != name {
				t.Errorf("the table has %q", name)
			}
		}
		if reply == nil {
			return
		}
		m := parse(t, reply)
		if len(reply) > 600 || !m.Response || m.ID != uint16(data[0])<<8|uint16(data[1]) {
			t.Errorf("%d bytes: %v", len(reply), m.GoString())
		}
	})
}

func TestQueriedNamesFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			// DNS writes a name with a dot at its end.
			if name, ok := plainName(strings.TrimSuffix(c.Host, ".") + "."); name != c.Name || ok != (c.Name != "") {
				t.Errorf("plainName(%q) = %q, %v, want %q", c.Host+".", name, ok, c.Name)
			}
		})
	}
}
