package proxy

import (
	"crypto/tls"
	"errors"
)

// crypto/tls puts handshake messages of up to 64 KiB together, during the
// handshake and at any time after it, which the memory budget does not see.
// These are the most that is read from a client without any plain text coming of
// it: all in all, and in whole records once the handshake is over. A ClientHello
// with post-quantum key shares may have 16 KiB.
const (
	mostHandshake = 20 << 10
	mostRecord    = 5 + 16<<10 + 256 // RFC 8446 section 5.2; what TLS 1.2 adds is less
	mostWhole     = 1 << 10
)

var errUnread = errors.New("read TLS: the client's messages are too large")

// ciphertext is a client's connection below TLS.
type ciphertext struct {
	*prefixedConn
	established bool
	came        int // bytes since the last plain text
	whole       int // of them, those of records that have ended

	head [5]byte // of the current record
	n    int     // how much of it has come, its head included
}

func (c *ciphertext) Read(p []byte) (int, error) {
	most := mostHandshake
	if c.established {
		most = mostRecord
	}
	if c.came >= most || c.established && c.whole > mostWhole {
		return 0, errUnread
	}
	n, err := c.prefixedConn.Read(p[:min(len(p), most-c.came)])
	c.came += n
	c.follow(p[:n])
	return n, err
}

// follow counts the records that end in data.
func (c *ciphertext) follow(data []byte) {
	for len(data) > 0 {
		took := 1
		if c.n < len(c.head) {
			c.head[c.n] = data[0]
		} else {
			took = min(len(data), c.size()-c.n)
		}
		data = data[took:]
		if c.n += took; c.n >= len(c.head) && c.n == c.size() {
			c.whole += c.n
			c.n = 0
		}
	}
}

// size returns the length of the current record, whose head is there.
func (c *ciphertext) size() int { return len(c.head) + int(c.head[3])<<8 + int(c.head[4]) }

// understood starts the counts anew: plain text came, or the handshake is over.
func (c *ciphertext) understood() { c.established, c.came, c.whole = true, 0, 0 }

// plaintext is a client's connection whose ciphertext is bounded.
type plaintext struct {
	*tls.Conn
	below *ciphertext
}

func (c *plaintext) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.below.understood()
	}
	return n, err
}
