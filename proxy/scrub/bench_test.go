package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkScrub measures pieces of 32 KiB. The last three kinds of data are
// what slows the search: escapes, a hexadecimal dump, and the secrets' own
// beginnings, as an attacker would send them.
func BenchmarkScrub(b *testing.B) {
	const piece = 32 << 10
	fill := func(s string) []byte { return bytes.Repeat([]byte(s), piece/len(s)+1)[:piece] }
	plain := fill(`{"id":12345,"name":"some name","url":"https://api.example.com/items/1",` +
		`"text":"A line, and one more.","ok":true},`)
	for _, size := range []int{8, 12, 20, 40} {
		for _, k := range []int{1, 8, 64} {
			var credentials []Credential
			for i := range k {
				credentials = append(credentials,
					Credential{Secret: []byte(fmt.Sprintf("s%04d-with-forty-bytes-in-all-0123456789ab", i*7919)[:size])})
			}
			set := NewSet(credentials)
			near := credentials[0].Secret[:min(size-1, Window-1)]
			for _, data := range []struct {
				name string
				data []byte
			}{
				{"json", plain},
				{"base64", []byte(base64.StdEncoding.EncodeToString(plain))[:piece]},
				{"escapes", fill(`{"url":"https:\/\/api.example.com\/items\/1?x=1&y=2","say":"\"yes\"\n"},`)},
				{"dump", []byte(hex.EncodeToString(plain))[:piece]},
				{"near", fill(string(near) + ".")},
				{"near escaped", fill(escapeAll(near) + ".")},
			} {
				b.Run(fmt.Sprintf("%s/size=%d/secrets=%d", data.name, size, k), func(b *testing.B) {
					b.SetBytes(piece)
					b.ReportAllocs()
					sc := set.NewScanner()
					for b.Loop() {
						_ = sc.Write(data.data)
					}
				})
			}
		}
	}
}

// BenchmarkEvent measures one event of 120 bytes.
func BenchmarkEvent(b *testing.B) {
	var credentials []Credential
	for i := range 8 {
		credentials = append(credentials,
			Credential{Secret: []byte(fmt.Sprintf("s%04d-with-forty-bytes-in-all-0123456789ab", i))})
	}
	event := []byte(fmt.Sprintf("data: {\"delta\":%q}\n\n", strings.Repeat("word ", 20)))
	sc := NewSet(credentials).NewScanner()
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		_ = sc.Write(event)
	}
}

func escapeAll(secret []byte) string {
	var s strings.Builder
	for _, c := range secret {
		fmt.Fprintf(&s, "%%%02x", c)
	}
	return s.String()
}
