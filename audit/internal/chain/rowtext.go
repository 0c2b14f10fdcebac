package chain

import (
	"encoding/json"
	"strings"
	"time"
)

// canonicalColumns are the columns of Row.canonical between seq and fields, in its order.
var canonicalColumns = [...]struct {
	name   string
	number bool
}{
	{"id", false}, {"event", false}, {"session_id", false}, {"source", false}, {"decision", false}, {"reason", false},
	{"connector_fqn", false}, {"connector_version", false}, {"tool", false}, {"operation", false}, {"binding", false},
	{"method", false}, {"scheme", false}, {"host", false}, {"port", true}, {"path", false}, {"http_version", false},
	{"status", true}, {"request_bytes", true}, {"response_bytes", true}, {"redactions", true}, {"duration_us", true},
	{"ts", false},
}

// Positions in canonicalColumns.
const (
	CanonicalID      = 0
	CanonicalEvent   = 1
	CanonicalSession = 2
	canonicalTS      = 22
)

// TextColumn returns the SQL expression of a text of three lines: a row's prev_hash, the row as Row.canonical writes
// it if no column needs an escape, and its hash. To read it costs a fraction of what 27 columns cost. A column that is
// NULL becomes a character that needs an escape, so that RowText.parse rejects it.
func TextColumn() string {
	var b strings.Builder
	b.WriteString(`concat(ifnull(prev_hash, char(0)), char(10), '{"seq":', seq, '`)
	for _, c := range canonicalColumns {
		quote := `"`
		if c.number {
			quote = ""
		}
		b.WriteString(`,"` + c.name + `":` + quote + `', ifnull(` + c.name + `, char(0)), '` + quote)
	}
	b.WriteString(`,"fields":', ifnull(fields, char(0)), '}', char(10), ifnull(hash, char(0)))`)
	return b.String()
}

// RowText is a row of TextColumn.
type RowText struct {
	Seq     int64
	row     string // in its canonical form
	Prev    string
	Hash    string
	Values  [len(canonicalColumns)]string
	Ts      int64 // in ns since 1970
	request string
	Strange bool // request is not known: fields have to be decoded
	Fields  string
}

// Parse splits the text of the row seq, and reports whether it is unambiguous: no column has a character that needs
// an escape, and no line end is in a line, so that the second line is what was hashed and each value is where it seems
// to be. All other rows have to be read column by column.
func (r *RowText) Parse(seq int64, text string) bool {
	const digits = 64
	end := len(text) - digits
	if end < digits+2 || text[digits] != '\n' || text[end-1] != '\n' {
		return false
	}
	*r = RowText{Seq: seq, row: text[digits+1 : end-1], Prev: text[:digits], Hash: text[end:]}
	rest, ok := strings.CutPrefix(r.row, `{"seq":`)
	if !ok {
		return false
	}
	number := digitsOf(rest)
	if number == "" || !isNumber(number, seq) {
		return false
	}
	rest = rest[len(number):]
	for i := range canonicalColumns {
		c := &canonicalColumns[i]
		if len(rest) < len(c.name)+4 || rest[0] != ',' || rest[1] != '"' || rest[2:2+len(c.name)] != c.name ||
			rest[2+len(c.name)] != '"' || rest[3+len(c.name)] != ':' {
			return false
		}
		rest = rest[4+len(c.name):]
		if c.number {
			r.Values[i] = digitsOf(rest)
			if r.Values[i] == "" {
				return false
			}
			rest = rest[len(r.Values[i]):]
			continue
		}
		if r.Values[i], ok = plainString(rest); !ok {
			return false
		}
		rest = rest[len(r.Values[i])+2:]
	}
	rest, ok = strings.CutPrefix(rest, `,"fields":`)
	if !ok || !strings.HasSuffix(rest, "}") {
		return false
	}
	if r.Ts, ok = ParseStamp(r.Values[canonicalTS]); !ok {
		return false
	}
	r.Fields = rest[:len(rest)-1]
	if r.request, ok = PlainRequestID(r.Fields); ok {
		return true
	}
	r.Strange = true
	return json.Valid([]byte(r.Fields)) && r.Fields[0] == '{' && strings.IndexByte(r.Fields, '\n') < 0
}

// RequestID returns the request_id of the fields, "" if there is none.
func (r *RowText) RequestID() string {
	if !r.Strange {
		return r.request
	}
	var fields map[string]any
	_ = json.Unmarshal([]byte(r.Fields), &fields) // parse has checked it
	request, _ := fields["request_id"].(string)
	return request
}

// plainString returns the text between the quotation mark at the beginning of s and the next one, and false if it has
// a character that appendString would escape.
func plainString(s string) (value string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; needsEscape[c] {
			return s[1:i], c == '"'
		}
	}
	return "", false
}

// PlainRequestID returns the request_id of an object whose values are plain strings and short numbers only, and false
// for any other object.
func PlainRequestID(fields string) (request string, ok bool) {
	if fields == "{}" {
		return "", true
	}
	rest, ok := strings.CutPrefix(fields, "{")
	for ok {
		var name, value string
		if name, ok = plainString(rest); !ok {
			break
		}
		if rest, ok = strings.CutPrefix(rest[len(name)+2:], ":"); !ok {
			break
		}
		if value, ok = plainString(rest); ok {
			rest = rest[len(value)+2:]
			if name == "request_id" {
				request = value
			}
		} else {
			number := digitsOf(rest)
			digits := strings.TrimPrefix(number, "-")
			if digits == "" || len(digits) > 1 && digits[0] == '0' || name == "request_id" {
				break
			}
			rest = rest[len(number):]
		}
		if rest == "}" {
			return request, true
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return "", false
}

// digitsOf returns the decimal digits at the beginning of s, with a sign if there is one.
func digitsOf(s string) string {
	i := 0
	if s != "" && s[0] == '-' {
		i++
	}
	begin := i
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	if i == begin {
		return ""
	}
	return s[:i]
}

// isNumber reports whether s is n in decimal.
func isNumber(s string, n int64) bool {
	var buf [20]byte
	i := len(buf)
	for m := n; m > 0; m /= 10 {
		i--
		buf[i] = byte('0' + m%10)
	}
	return n > 0 && s == string(buf[i:])
}

// isHash reports whether s has only the digits that a stored hash has.
func isHash(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ParseStamp returns a time in TimeFormat in ns since 1970, and false for a text that Row.Stamp does not return.
func ParseStamp(s string) (ns int64, ok bool) {
	if len(s) != len(TimeFormat) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' ||
		s[19] != '.' || s[29] != 'Z' {
		return 0, false
	}
	number := func(part string) int {
		n := 0
		for i := range len(part) {
			c := part[i]
			if c < '0' || c > '9' {
				ok = false
			}
			n = 10*n + int(c-'0')
		}
		return n
	}
	ok = true
	year, month, day := number(s[:4]), number(s[5:7]), number(s[8:10])
	hour, minute, second, nano := number(s[11:13]), number(s[14:16]), number(s[17:19]), number(s[20:29])
	if !ok || year < 1970 || year > 2200 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	return t.UnixNano(), t.Day() == day
}
