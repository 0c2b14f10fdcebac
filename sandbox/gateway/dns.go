package gateway

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
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
