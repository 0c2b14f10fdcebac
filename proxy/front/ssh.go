package front

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy"
)

// sshVersion begins what an SSH client sends first (RFC 4253 section 4.2).
const sshVersion = "SSH-"

// sshWait is how long an SSH client may take to read why it is denied.
const sshWait = 5 * time.Second

// rejectSSH denies an SSH connection in SSH's own words: a client prints the description of a disconnection, and would
// report only a closed connection otherwise.
func (f *Front) rejectSSH(client net.Conn, at proxy.Arrival) {
	d := proxy.ReasonNotTLS.Deny("SSH does not leave this session, HTTPS does%s", f.gitAdvice(at.Authority.Host))
	f.rejectTunnel(at, d)
	_ = client.SetDeadline(time.Now().Add(sshWait))
	if _, err := client.Write(sshDisconnect("aileron: " + d.Message)); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, client, 64<<10) // what is left unread would take the message with it
}

// gitAdvice returns how git is used with a host of SSH, if the session allows its repositories over HTTPS. The host may
// be the one for SSH on port 443: ssh.github.com, altssh.gitlab.com.
func (f *Front) gitAdvice(host string) string {
	index := f.plane.Grants().Index
	for _, h := range []string{host, strings.TrimPrefix(strings.TrimPrefix(host, "alt"), "ssh.")} {
		if index != nil && index.HasRepositories(h) {
			return ": for git, use git remote set-url origin https://" + h + "/OWNER/REPOSITORY"
		}
	}
	return ""
}

// sshDisconnect returns a server's version and its message SSH_MSG_DISCONNECT, "host not allowed to connect" (RFC 4253
// sections 4.2, 6 and 11.1).
func sshDisconnect(why string) []byte {
	payload := []byte{1, 0, 0, 0, 1}
	payload = append(binary.BigEndian.AppendUint32(payload, uint32(len(why))), why...) //nolint:gosec // a sentence
	payload = append(payload, 0, 0, 0, 0)                                              // no language
	padding := 8 - (5+len(payload))%8
	if padding < 4 {
		padding += 8
	}
	packet := []byte("SSH-2.0-aileron\r\n")
	packet = binary.BigEndian.AppendUint32(packet, uint32(1+len(payload)+padding)) //nolint:gosec // as above
	packet = append(append(packet, byte(padding)), payload...)
	return append(packet, make([]byte, padding)...)
}
