package gateway

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	ttl         = 60   // seconds; the mapping itself never changes
	udpSize     = 1232 // what we announce in EDNS (RFC 6891): no fragments
	localhost   = "localhost"
	reverseZone = ".in-addr.arpa"
)

// answer is the stub's answer to one message, or nil when there is none to
// give (RFC 1035, RFC 6891). Nothing is forwarded: an A query gets the name's
// own fake address, all other types an empty answer, so that a client without
// an IPv6 address or an HTTPS record goes on with A. A name that no HTTP
// authority can be does not exist (NXDOMAIN); a full table is said as REFUSED.
func (n *names) answer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil // too short to have an id, or an answer: answering answers would loop
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
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

// lookup gives the code and, when there is one, the record for a question.
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

// lookupReverse tells which name an address was given to, for tools that ask
// before they speak.
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

// reverse reads "4.3.2.1" as the address 1.2.3.4.
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

// hasEDNS walks the additional records for an OPT.
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

// pack builds an answer: the question when there was one, the record when
// there is one, and an OPT when the client sent one (RFC 6891 section 7). It
// is always below 512 bytes and so is never truncated.
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
