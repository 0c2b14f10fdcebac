package websocket

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

func TestAFramesHeaderIsReadStrictly(t *testing.T) {
	const mask = "\x01\x02\x03\x04"
	for name, c := range map[string]struct {
		frame  string
		masked bool
		why    string // "": it is taken
	}{
		"text":               {"\x81\x82" + mask, true, ""},
		"of an origin":       {"\x81\x02", false, ""},
		"medium":             {"\x82\xfe\x00\x7e" + mask, true, ""},
		"long":               {"\x82\xff\x00\x00\x00\x00\x00\x01\x00\x00" + mask, true, ""},
		"ping":               {"\x89\xfd" + mask, true, ""},
		"reserved bit 1":     {"\xc1\x82" + mask, true, "reserved bit"},
		"reserved bit 2":     {"\xa1\x82" + mask, true, "reserved bit"},
		"reserved bit 3":     {"\x91\x82" + mask, true, "reserved bit"},
		"reserved data":      {"\x83\x82" + mask, true, "opcode"},
		"reserved control":   {"\x8b\x82" + mask, true, "opcode"},
		"unmasked client":    {"\x81\x02", true, "mask"},
		"masked origin":      {"\x81\x82" + mask, false, "mask"},
		"split control":      {"\x09\x80" + mask, true, "control frame"},
		"long control":       {"\x89\xfe\x00\x7e" + mask, true, "control frame"},
		"short in two bytes": {"\x82\xfe\x00\x7d" + mask, true, "shortest form"},
		"short in eight":     {"\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" + mask, true, "shortest form"},
		"longer than can be": {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" + mask, true, "absurd"},
		"negative":           {"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" + mask, true, "absurd"},
	} {
		_, err := readHeader(bufio.NewReader(strings.NewReader(c.frame)), c.masked)
		var v violation
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%s: %v, want a frame", name, err)
		case c.why != "" && (!errors.As(err, &v) || v.code != protocolError || !strings.Contains(v.why, c.why)):
			t.Errorf("%s: %v, want the violation %q", name, err, c.why)
		}
	}
}

func TestThePiecesOfAMessageAreInOrder(t *testing.T) {
	piece := func(op byte, fin bool) header { return header{op: op, fin: fin} }
	for name, c := range map[string]struct {
		frames []header
		ok     bool
	}{
		"whole": {[]header{piece(opText, true), piece(opBinary, true)}, true},
		"pieces": {[]header{piece(opText, false), piece(opContinuation, false), piece(opContinuation, true),
			piece(opText, true)}, true},
		"control between":    {[]header{piece(opText, false), piece(opPing, true), piece(opContinuation, true)}, true},
		"lone continuation":  {[]header{piece(opContinuation, true)}, false},
		"after the end":      {[]header{piece(opText, true), piece(opContinuation, true)}, false},
		"another in between": {[]header{piece(opText, false), piece(opText, true)}, false},
	} {
		var s sequence
		var err error
		for _, h := range c.frames {
			if err = s.next(h); err != nil {
				break
			}
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
