package h2

import "strconv"

// appendFields appends the field section of head to block. It uses neither the
// dynamic table of HPACK nor its Huffman code (RFC 7541): what the sandbox's own
// socket carries need not be small, and a section that depends on no other is
// cheap to write. A table that compresses a secret beside what an attacker chose
// would also reveal it by its length (CRIME; RFC 7541 section 7.1).
func appendFields(block []byte, head *responseHead) []byte {
	if head.status > 0 {
		block = appendStatus(block, head.status)
	}
	for name, values := range head.header {
		code := codes[name]
		if code == hopField {
			continue
		}
		for _, value := range values {
			if code > 0 {
				block = appendInt(block, 0, 4, int(code))
			} else {
				block = appendName(append(block, 0), name)
			}
			block = appendString(block, value)
		}
	}
	if head.length >= 0 {
		var digits [20]byte
		length := strconv.AppendInt(digits[:0], head.length, 10)
		block = appendInt(block, 0, 4, contentLength)
		block = append(appendInt(block, 0, 7, len(length)), length...)
	}
	return block
}

// noTable is a dynamic table size update to 0 (RFC 7541 section 6.3). The first
// field section of a connection begins with it, and no later limit of the client's
// can then be exceeded.
const noTable = 0x20

// Indices of the static table (RFC 7541 appendix A).
const (
	status200     = 8
	contentLength = 28
)

// appendStatus appends the field :status.
func appendStatus(block []byte, status int) []byte {
	if status == 200 {
		return append(block, 0x80|status200)
	}
	block = appendInt(block, 0, 4, status200)
	return appendString(block, strconv.Itoa(status))
}

// appendName appends the name of a field, in lower case.
func appendName(block []byte, name string) []byte {
	block = appendInt(block, 0, 7, len(name))
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		block = append(block, c)
	}
	return block
}

func appendString(block []byte, s string) []byte {
	return append(appendInt(block, 0, 7, len(s)), s...)
}

// appendInt appends n with a prefix of some bits, in an octet whose other bits are
// those of first (RFC 7541 section 5.1).
func appendInt(block []byte, first byte, prefix uint, n int) []byte {
	most := 1<<prefix - 1
	if n < most {
		return append(block, first|byte(n))
	}
	block = append(block, first|byte(most))
	for n -= most; n >= 0x80; n >>= 7 {
		block = append(block, 0x80|byte(n&0x7f))
	}
	return append(block, byte(n))
}

// hopField is the code of a field that is not sent.
const hopField = 0xff

// codes has the index of the static table for the names that are there, and
// hopField for fields of one HTTP/1.1 hop, which are invalid in HTTP/2 (RFC 9113
// section 8.2.2), and for Content-Length, which appendFields sets.
var codes = map[string]uint8{
	"Connection": hopField, "Content-Length": hopField, "Keep-Alive": hopField, "Proxy-Connection": hopField,
	"Te": hopField, "Trailer": hopField, "Transfer-Encoding": hopField, "Upgrade": hopField,

	"Accept-Ranges": 18, "Access-Control-Allow-Origin": 20, "Age": 21, "Allow": 22, "Cache-Control": 24,
	"Content-Disposition": 25, "Content-Encoding": 26, "Content-Language": 27, "Content-Location": 29,
	"Content-Range": 30, "Content-Type": 31, "Date": 33, "Etag": 34, "Expires": 36, "Last-Modified": 44, "Link": 45,
	"Location": 46, "Proxy-Authenticate": 48, "Refresh": 52, "Retry-After": 53, "Server": 54, "Set-Cookie": 55,
	"Strict-Transport-Security": 56, "Vary": 59, "Via": 60, "Www-Authenticate": 61,
}
