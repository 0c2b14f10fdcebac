// Package hosttest lists host names with the verdict of package hostport.
//
// Every package that reads host names from outside runs its own reader over
// [Cases], so that no two of them can disagree about a name. It is for tests
// only.
package hosttest

import "strings"

// Case is a spelling of a host, without a port.
type Case struct {
	Host string
	Name string // the canonical name; "" if Host is not a name
	Why  string // what the case is about
}

// Cases are the spellings on which readers of host names are known to differ.
var Cases = []Case{
	{"api.example", "api.example", "a plain name"},
	{"API.Example", "api.example", "upper case"},
	{"a1.2b.example", "a1.2b.example", "labels that begin with a digit"},
	{"1.2.3.example", "1.2.3.example", "a name that only begins like an address"},
	{"xn--pi-7kc.example", "xn--pi-7kc.example", "an A-label (RFC 5890)"},
	{"a--b.example", "a--b.example", "two inner hyphens"},
	{"printer", "printer", "one label"},
	{"printer1", "printer1", "one label that ends in a digit"},
	{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example", "a label of 63 bytes"},
	{strings.Repeat("a.", 123) + "example", strings.Repeat("a.", 123) + "example", "a name of 253 bytes"},
	{"0xapi.example", "0xapi.example", "a first label that begins with 0x"},
	{"0x7f.example", "0x7f.example", "a first label that is a hexadecimal number"},
	{"api.0xyz", "api.0xyz", "a last label that begins with 0x and is no number"},
	{"api_v1.example", "api_v1.example", "an underscore"},
	{"_dmarc.api_.example", "_dmarc.api_.example", "underscores at the ends of labels"},
	{"API.example.", "api.example", "a dot at the end"},
	{strings.Repeat("a.", 123) + "example.", strings.Repeat("a.", 123) + "example", "a name of 253 bytes and a dot"},

	{"api.example..", "", "two dots at the end"},
	{"127.0.0.1.", "", "an address with a dot at the end"},
	{"", "", "empty"},
	{".", "", "the root"},
	{".api.example", "", "a dot at the beginning"},
	{"api..example", "", "an empty label"},
	{strings.Repeat("a", 64) + ".example", "", "a label of 64 bytes"},
	{strings.Repeat("a.", 123) + "example1", "", "a name of 254 bytes"},
	{"-api.example", "", "a hyphen at the beginning of a label"},
	{"api-.example", "", "a hyphen at the end of a label"},
	{"api.example ", "", "a space"},
	{"api%2eexample", "", "an escape"},
	{"user@api.example", "", "user information"},
	{"api.example/path", "", "a path"},
	{"api.example#", "", "a fragment"},
	{"api.example\x00", "", "a NUL"},
	{"api.example\r\n", "", "a line end"},
	{"*.example", "", "a wildcard within a wildcard, or none where none is allowed"},
	{"аpi.example", "", "a Cyrillic letter"},
	{"ß.example", "", "a letter that IDNA 2003 and 2008 map differently"},
	{"boo\u212aing.example", "", "the Kelvin sign, whose lower case is the letter k"},
	{"ap\u0130.example", "", "a dotted capital I, whose lower case begins with the letter i"},
	{"api\u3002example", "", "an ideographic full stop, which IDNA maps to a dot"},
	{"127.1", "", "two numbers, as inet_aton reads them"},
	{"1.2.3", "", "three numbers"},
	{"2130706433", "", "one decimal number"},
	{"017700000001", "", "one octal number"},
	{"0x7f000001", "", "one hexadecimal number"},
	{"0X7F.1", "", "a hexadecimal number in upper case"},
	{"0x7f.0.0.1", "", "a hexadecimal first number"},
	{"0177.0.0.1", "", "an octal first number"},
	{"127.0.0.01", "", "a leading zero"},
	{"256.0.0.1", "", "a number that is too large"},
	{"1.2.3.4.5", "", "five numbers"},
	{"api.1", "", "a last label that is a number"},
	{"api.0x7f", "", "a last label that is a hexadecimal number"},
	{"api.0x", "", "a last label that is 0x alone"},
	{"[api.example]", "", "a name in brackets"},
	{"[::1", "", "a bracket that is not closed"},
	{"[fe80::1%lo]", "", "a zone"},
	{"[127.0.0.1]", "", "an IPv4 address in brackets"},
}
