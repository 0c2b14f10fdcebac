package corpus

// Markdown returns a long document with headings, lists, links, code and tables.
func Markdown(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		switch w.r.IntN(8) {
		case 0:
			w.pick("# ", "## ", "### ")
			w.prose(2, 6)
		case 1:
			w.list()
		case 2:
			w.text("```sh\n$ ", w.word(), " --", w.word(), "=", w.word(), " | grep -v '", w.word(), "' > /tmp/", w.word(), "\n")
			w.prose(4, 12)
			w.text("\n```")
		case 3:
			w.table()
		case 4:
			w.text("![", w.word(), "](https://img.example/", w.word(), ".svg?style=flat&label=", w.word(), "%20", w.word(),
				"&color=")
			w.hex(3)
			w.text(")")
		case 5:
			w.text("    ", w.word(), " := ", w.word(), `("`, w.word(), `\n", &`, w.word(), "{", w.word(), ": 0x")
			w.hex(4)
			w.text("})")
		default:
			w.paragraph()
		}
		w.text("\n\n")
	})
}

// paragraph writes prose in lines of less than 80 columns.
func (w *writer) paragraph() {
	column := 0
	for range 30 + w.r.IntN(80) {
		word := w.word()
		if column+len(word) > 76 {
			w.text("\n")
			column = 0
		}
		if column > 0 {
			w.text(" ")
		}
		if w.chance(20) {
			word = "`" + word + "`"
		}
		w.text(word)
		column += len(word) + 1
	}
	w.text(".")
}

func (w *writer) list() {
	for range 2 + w.r.IntN(6) {
		w.text("- **", w.word(), "**: ")
		w.prose(4, 14)
		w.text(" ([#")
		w.below(9999)
		w.text("](https://code.example/", w.word(), "/issues/")
		w.below(9999)
		w.text("))\n")
	}
}

func (w *writer) table() {
	w.text("| ", w.word(), " | ", w.word(), " |\n| --- | ---: |\n")
	for range 2 + w.r.IntN(5) {
		w.text("| ")
		w.prose(1, 4)
		w.text(" | ")
		w.below(100000)
		w.text(" |\n")
	}
}

// HTML returns a page: links with &amp;, inline data, attributes with identifiers, indented.
func HTML(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n</head>\n<body>\n", "")
		switch w.r.IntN(5) {
		case 0:
			w.text(`    <div class="`, w.word(), " ", w.word(), `" id="`, w.word(), "-")
			w.below(9999)
			w.text(`" data-hydro="`)
			w.hex(32)
			w.text("\">\n")
		case 1:
			w.text(`      <li><a href="/`, w.word(), "?tab=", w.word(), "&amp;page=")
			w.below(99)
			w.text("&amp;q=", w.word(), "%3A", w.word(), `" rel="nofollow">`)
			w.prose(1, 4)
			w.text("</a></li>\n")
		case 2:
			w.text(`      <script type="application/json">{"props":{"name":"`, w.word(), `","html":"\u003cb\u003e`, w.word(),
				`\u003c/b\u003e","count":`)
			w.below(999)
			w.text("}}</script>\n")
		case 3:
			w.text(`      <svg viewBox="0 0 16 16" width="16"><path d="M`)
			for range 12 {
				w.below(16)
				w.text(".")
				w.below(100)
				w.pick(" ", "-", "l", "c", "a", "h", "v")
			}
			w.text("z\"></path></svg>\n")
		default:
			w.text("      <p>")
			w.prose(15, 60)
			w.text(" &mdash; ", w.word(), "&nbsp;", w.word(), " &quot;", w.word(), "&quot;</p>\n")
		}
	})
}

// MinifiedScript returns a script without blanks and with hardly any line end.
func MinifiedScript(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		switch w.r.IntN(5) {
		case 0:
			w.text("function ")
			w.letter()
			w.text("(e,t,n){var r=t.", w.word(), "||{},o=n?", "e:\"", w.word(), "\";return r[o]&&e.", w.word(), "(r,0x")
			w.hex(2)
			w.text(")}")
		case 1:
			w.text("var ")
			w.letter()
			w.text(`="`, w.word(), `\n\x1b[`)
			w.below(40)
			w.text(`m",`, w.word(), "=/^[\\w\\/+-]+={0,2}$/i.test(", w.word(), ");")
		case 2:
			w.text("e.exports={")
			for range 2 + w.r.IntN(6) {
				w.text(w.word(), ":")
				w.below(1 << 16)
				w.text(",")
			}
			w.text("};")
		case 3:
			w.text(`t.push([`)
			for range 4 + w.r.IntN(20) {
				w.below(256)
				w.text(",")
			}
			w.text(`0]);throw new Error("`)
			w.prose(2, 7)
			w.text(`\u2026");`)
		default:
			w.text("if(this.", w.word(), "!==")
			w.letter()
			w.text("&&!", w.word(), "(", w.word(), ">>>", "2&63))for(let i=0;i<", w.word(), ".length;i++)", w.word(),
				"[i]^=i%7;")
		}
		if w.chance(400) {
			w.text("\n//# sourceMappingURL=", w.word(), ".js.map\n")
		}
	})
}

func (w *writer) letter() { w.b = append(w.b, byte('a'+w.r.IntN(26)), byte('A'+w.r.IntN(26))) }

// ServerSentEvents returns the events of a language model that streams: a few characters in each, some with escapes.
func ServerSentEvents(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.text("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":")
		w.below(3)
		w.text(`,"delta":{"type":"text_delta","text":"`)
		switch w.r.IntN(6) {
		case 0:
			w.text(`\n\n`, w.word())
		case 1:
			w.text(` \u2014 `, w.word())
		case 2:
			w.text(` \"`, w.word(), `\"`)
		default:
			w.text(" ", w.word(), " ", w.word())
		}
		w.text("\"}}\n\n")
	})
}

// Log returns lines of a server's log: times, addresses, trace identifiers, paths, key=value pairs.
func Log(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.time(true)
		w.pick(" INFO ", " WARN ", " ERROR ", " DEBUG ")
		w.text("[", w.word(), "-")
		w.below(16)
		w.text("] ")
		if w.chance(3) {
			w.text("10.")
			w.below(256)
			w.text(".")
			w.below(256)
			w.text(`.7 - - "GET /`, w.word(), "/", w.word(), "?id=")
			w.below(1 << 20)
			w.text("&sort=", w.word(), `%20desc HTTP/1.1" 200 `)
			w.below(1 << 16)
		} else {
			w.prose(3, 12)
			w.text(" ", w.word(), "=")
			w.below(10000)
			w.text(" duration=")
			w.below(1000)
			w.text("ms trace=")
			w.hex(16)
		}
		w.text("\n")
	})
}
