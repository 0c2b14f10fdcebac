package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ALRubinger/aileron/internal/hostport"
)

const (
	ttl         = 60   // seconds; the mapping itself never changes
	udpSize     = 1232 // announced in EDNS (RFC 6891): no fragments
	localhost   = "localhost"
	reverseZone = ".in-addr.arpa"
)

// answer returns the stub's answer to a message, or nil if there is none (RFC
// 1035, RFC 6891). Nothing is forwarded: an A query gets the fake address of the
// name, every other type an empty answer, so that a client that finds no IPv6
// address or HTTPS record goes on with A. A name that cannot be an HTTP authority
// does not exist (NXDOMAIN). When the table is full, the answer is REFUSED.
func (n *names) answer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil // too short to have an id, or an answer: answering answers would loop
	}
	reply := dnsmessage.Header{
		ID: h.ID, OpCode: h.OpCode, Response: true,
		RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}
	if h.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return pack(reply, nil, nil, false)
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, false)
	}
	edns, err := hasEDNS(&p)
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, false)
	}
	q := questions[0]
	var resource dnsmessage.ResourceBody
	reply.RCode, resource = n.lookup(q)
	return pack(reply, &q, resource, edns)
}

// lookup returns the code for a question, and its record if there is one.
func (n *names) lookup(q dnsmessage.Question) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	if q.Class != dnsmessage.ClassINET && q.Class != dnsmessage.ClassANY {
		return dnsmessage.RCodeRefused, nil
	}
	name, ok := plainName(q.Name.String())
	if !ok {
		return dnsmessage.RCodeNameError, nil
	}
	if strings.HasSuffix(name, reverseZone) {
		return n.lookupReverse(name, q.Type)
	}
	if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
		return dnsmessage.RCodeSuccess, nil
	}
	if name == localhost || strings.HasSuffix(name, "."+localhost) { // RFC 6761 section 6.3
		return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}
	}
	addr, err := n.address(name)
	if err != nil {
		return dnsmessage.RCodeRefused, nil
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: addr.As4()}
}

// lookupReverse answers a question for the name of an address, for tools that ask
// it before they connect.
func (n *names) lookupReverse(name string, kind dnsmessage.Type) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	addr, ok := reverse(strings.TrimSuffix(name, reverseZone))
	if !ok {
		return dnsmessage.RCodeNameError, nil
	}
	given, ok := n.name(addr)
	if !ok {
		return dnsmessage.RCodeNameError, nil
	}
	if kind != dnsmessage.TypePTR && kind != dnsmessage.TypeALL {
		return dnsmessage.RCodeSuccess, nil
	}
	ptr, err := dnsmessage.NewName(given + ".")
	if err != nil {
		return dnsmessage.RCodeServerFailure, nil
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: ptr}
}

// reverse parses "4.3.2.1" as the address 1.2.3.4.
func reverse(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return netip.Addr{}, false
	}
	var a [4]byte
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		a[3-i] = byte(n)
	}
	return netip.AddrFrom4(a), true
}

// hasEDNS reports whether the additional records hold an OPT.
func hasEDNS(p *dnsmessage.Parser) (bool, error) {
	found := false
	for {
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return found, nil
		}
		if err != nil {
			return false, err
		}
		found = found || h.Type == dnsmessage.TypeOPT
		if err := p.SkipAdditional(); err != nil {
			return false, err
		}
	}
}

// pack encodes an answer: the question and the record, if there are any, and an
// OPT if the client sent one (RFC 6891 section 7). An answer is always below 512
// bytes, and so is never truncated.
func pack(h dnsmessage.Header, q *dnsmessage.Question, record dnsmessage.ResourceBody, edns bool) []byte {
	m := dnsmessage.Message{Header: h}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
	}
	if record != nil {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl},
			Body:   record,
		}}
	}
	if edns {
		opt := dnsmessage.ResourceHeader{}
		if opt.SetEDNS0(udpSize, h.RCode, false) == nil {
			m.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}}
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// maxNames bounds the table: about 10 MiB if every name is as long as can be.
const maxNames = 1 << 15

// source is the source address of the sandbox's connections. It lies in the
// benchmarking block (RFC 2544, RFC 6890), which is never routed.
const source = "198.19.255.254"

// The first address of the table. The block 198.18.0.0/15 of RFC 2544 has room for four times maxNames, and source lies
// beyond them. Without packet rules it is one of loopback, far from those that programs choose.
var (
	firstFake     = netip.MustParseAddr("198.18.0.1")
	firstLoopback = netip.MustParseAddr("127.64.0.1")
)

var errTableFull = errors.New("assign an address: the table of names is full")

// names maps every name to a fake address of its own, for as long as the gateway
// runs: a client may keep an address as long as it likes, and must never reach
// another name under it.
type names struct {
	first   netip.Addr
	mu      sync.RWMutex
	room    int // the most names
	byName  map[string]uint32
	all     []string
	refused atomic.Int64 // queries for which there was no room
}

func newNames() *names { return &names{first: firstFake, room: maxNames, byName: map[string]uint32{}} }

// address returns the address of name, which is plain (see plainName).
func (n *names) address(name string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, ok := n.byName[name]
	if !ok {
		if len(n.all) == n.room {
			n.refused.Add(1)
			return netip.Addr{}, errTableFull
		}
		i = uint32(len(n.all)) //nolint:gosec // less than n.room
		n.byName[name] = i
		n.all = append(n.all, name)
	}
	first := n.first.As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(first[:])+i))), nil
}

// name returns the name whose address is addr.
func (n *names) name(addr netip.Addr) (string, bool) {
	if !addr.Is4() {
		return "", false
	}
	a, first := addr.As4(), n.first.As4()
	i := uint64(binary.BigEndian.Uint32(a[:])) - uint64(binary.BigEndian.Uint32(first[:]))
	n.mu.RLock()
	defer n.mu.RUnlock()
	if i >= uint64(len(n.all)) { // an address before the first wraps to a huge number
		return "", false
	}
	return n.all[i], true
}

// plainName returns the form of a DNS name, which has a dot at its end, that an
// authority has, and false for a name that no HTTP authority can be.
func plainName(s string) (string, bool) {
	name, err := hostport.ParseName(s)
	return name, err == nil
}

const (
	maxDNSConnections = 128
	maxQuery          = 4096 // bytes; no client sends a longer query
	dnsIdle           = 10 * time.Second
)

// resolver serves the DNS stub over UDP and TCP.
type resolver struct {
	cfg   Config
	names *names
}

// serveUDP answers datagrams one after the other until conn closes: no answer
// waits for anything.
func (r *resolver) serveUDP(conn *net.UDPConn) error {
	buf := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		if reply := r.names.answer(buf[:n]); reply != nil {
			// A client that is gone needs no answer.
			_, _ = conn.WriteToUDPAddrPort(reply, from)
		}
	}
}

func (r *resolver) serveTCP(_ context.Context, conn *net.TCPConn) { r.serveStream(conn) }

// serveStream answers the queries of one connection in order (RFC 7766), until
// the first message that is no query.
func (r *resolver) serveStream(conn net.Conn) {
	buf := make([]byte, 2, maxQuery)
	for {
		_ = conn.SetDeadline(time.Now().Add(dnsIdle))
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(buf[:2]))
		if size > maxQuery {
			return
		}
		query := buf[:size]
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := r.names.answer(query)
		if reply == nil {
			return
		}
		//nolint:gosec // one question and at most one address
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, len(reply)+2), uint16(len(reply)))
		if _, err := conn.Write(append(framed, reply...)); err != nil {
			return
		}
	}
}
