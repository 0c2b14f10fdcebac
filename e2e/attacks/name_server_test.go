package attacks

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is the DNS of the fixture: the names in places, everything below
// evil.test, and what a case sets. It keeps every name that is asked for.
type nameServer struct {
	mu    sync.Mutex
	asked []string
	// answer overrides the zone; ok false means: as ever.
	answer func(name string, v6 bool) (addrs []netip.Addr, ok bool)
	// script completes a whole message instead, which a zone cannot hold; false: there is no answer.
	script func(*dnsmessage.Message) bool
}

func startNames(at netip.AddrPort) (*nameServer, error) {
	s := &nameServer{}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			out := s.reply(buf[:n])
			if len(out) > 1200 {
				out = truncated(out)
			}
			if out != nil {
				_, _ = udp.WriteToUDPAddrPort(out, from)
			}
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go s.stream(c)
		}
	}()
	return s, nil
}

func (s *nameServer) stream(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, msg); err != nil {
			return
		}
		out := s.reply(msg)
		if out == nil {
			return
		}
		binary.BigEndian.PutUint16(size[:], uint16(len(out)))
		_, _ = c.Write(append(size[:], out...))
	}
}

func (s *nameServer) reply(raw []byte) []byte {
	var msg dnsmessage.Message
	if msg.Unpack(raw) != nil || len(msg.Questions) != 1 {
		return nil
	}
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: msg.ID, Response: true, RecursionAvailable: true,
		RecursionDesired: msg.RecursionDesired}, Questions: msg.Questions}
	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	if script == nil {
		script = s.zone
	}
	if !script(&out) {
		return nil
	}
	packed, err := out.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// truncated is the head of an answer that is too long for a datagram.
func truncated(whole []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(whole) != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	out, _ := m.Pack()
	return out
}

// zone completes an answer by the names and addresses of the fixture.
func (s *nameServer) zone(out *dnsmessage.Message) bool {
	q := out.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addrs, known := s.resolve(name, q.Type == dnsmessage.TypeAAAA)
	if !known {
		out.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return true
}

func (s *nameServer) resolve(name string, v6 bool) ([]netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name)
	if s.answer != nil {
		if addrs, ok := s.answer(name, v6); ok {
			return addrs, true
		}
	}
	if at, ok := places[name]; ok && name != "dns" {
		return []netip.Addr{at}, true
	}
	if strings.HasSuffix(name, ".evil.test") {
		return []netip.Addr{places["evil.test"]}, true
	}
	return nil, false
}

// take returns the names asked for since the last time.
func (s *nameServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// answers sets the answers for names outside the zone; nil resets them.
func (s *nameServer) answers(f func(name string, v6 bool) ([]netip.Addr, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// says sets how whole messages are completed; nil resets it.
func (s *nameServer) says(script func(*dnsmessage.Message) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}
