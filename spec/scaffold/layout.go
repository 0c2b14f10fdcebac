package scaffold

import (
	"bytes"
	"encoding/json"
	"strings"
)

// widest is the width in bytes up to which a JSON value stands on one line.
const widest = 110

// layout returns JSON with each object and array on one line where it fits, and
// otherwise an entry per line: a person edits the file.
func layout(compact []byte) []byte {
	var b bytes.Buffer
	l := &layouter{dec: json.NewDecoder(bytes.NewReader(compact))}
	l.dec.UseNumber()
	l.value().write(&b, 0, 0)
	b.WriteByte('\n')
	return b.Bytes()
}

// piece is a JSON value in parts.
type piece struct {
	open, shut string
	keys       []string // of an object, as JSON
	items      []piece
	width      int // on one line
}

// layouter reads compact JSON that encoding/json has written.
type layouter struct{ dec *json.Decoder }

func (l *layouter) value() piece {
	token, err := l.dec.Token()
	if err != nil {
		return piece{}
	}
	delim, ok := token.(json.Delim)
	if !ok {
		text := scalar(token)
		return piece{open: text, width: len(text)}
	}
	p := piece{open: delim.String(), shut: string(delim + 2), width: 2} // [ and ], { and } are two apart
	for l.dec.More() {
		if delim == '{' {
			key, err := l.dec.Token()
			if err != nil {
				return piece{}
			}
			p.keys = append(p.keys, scalar(key)+": ")
			p.width += len(p.keys[len(p.keys)-1])
		}
		item := l.value()
		p.items = append(p.items, item)
		p.width += item.width + len(", ")
	}
	_, _ = l.dec.Token()
	return p
}

// scalar returns a string, number or literal as JSON.
func scalar(v any) string {
	text, err := encode(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// write writes the value, which begins at a column.
func (p piece) write(b *bytes.Buffer, depth, column int) {
	b.WriteString(p.open)
	oneLine := column+p.width <= widest
	for i, item := range p.items {
		switch {
		case !oneLine:
			b.WriteString("\n" + strings.Repeat("  ", depth+1))
		case i > 0:
			b.WriteByte(' ')
		}
		at := 2 * (depth + 1)
		if p.keys != nil {
			b.WriteString(p.keys[i])
			at += len(p.keys[i])
		}
		if oneLine {
			at = 0
		}
		item.write(b, depth+1, at)
		if i < len(p.items)-1 {
			b.WriteByte(',')
		}
	}
	if !oneLine && p.shut != "" {
		b.WriteString("\n" + strings.Repeat("  ", depth))
	}
	b.WriteString(p.shut)
}
