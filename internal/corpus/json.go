package corpus

// Registry returns the metadata of a package registry: versions with integrity hashes in base64, checksums in
// hexadecimal, URLs of archives, times and addresses.
func Registry(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin(`{"_id":"some-package","name":"some-package","versions":{`, ",")
		version := string(appendVersion(nil, w.n))
		w.text(`"`, version, `":{"name":"some-package","version":"`, version, `","description":"`)
		w.prose(4, 10)
		w.text(`","main":"lib/index.js","scripts":{"test":"node --test","build":"tsc -p ."},`,
			`"repository":{"type":"git","url":"git+https://code.example/`, w.word(), `/some-package.git"},"author":{"name":"`,
			w.word(), " ", w.word(), `","email":"`, w.word(), `@mail.example"},"license":"MIT","dependencies":{`)
		for i := range w.r.IntN(8) {
			if i > 0 {
				w.text(",")
			}
			w.text(`"@`, w.word(), "/")
			w.name("-")
			w.text(`":"^`)
			w.below(20)
			w.text(".")
			w.below(20)
			w.text(`.0"`)
		}
		w.text(`},"gitHead":"`)
		w.hex(20)
		w.text(`","dist":{"integrity":"sha512-`)
		w.base64(64)
		w.text(`","shasum":"`)
		w.hex(20)
		w.text(`","tarball":"https://packages.example/some-package/-/some-package-`, version, `.tgz","fileCount":`)
		w.below(200)
		w.text(`,"unpackedSize":`)
		w.below(1 << 20)
		w.text(`,"signatures":[{"keyid":"SHA256:`)
		w.base64(32)
		w.text(`","sig":"`)
		w.base64(71)
		w.text(`"}]},"_npmUser":{"name":"`, w.word(), `","email":"`, w.word(),
			`@mail.example"},"directories":{},"published":"`)
		w.time(true)
		w.text(`","engines":{"node":"\u003e=18"}}`)
	})
}

func appendVersion(b []byte, n int) []byte {
	w := writer{b: b}
	w.int(n / 200)
	w.text(".")
	w.int(n / 10 % 20)
	w.text(".")
	w.int(n % 10)
	return w.b
}

// PrettyJSON returns indented JSON with a hash in each record.
func PrettyJSON(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin("[\n", ",\n")
		w.text("  {\n    \"id\": ")
		w.below(1 << 30)
		w.text(",\n    \"name\": \"")
		w.name(" ")
		w.text("\",\n    \"sha\": \"")
		w.hex(20)
		w.text("\",\n    \"url\": \"https://api.example.com/", w.word(), "/")
		w.below(1 << 20)
		w.text("\",\n    \"tags\": [\n      \"", w.word(), "\",\n      \"", w.word(), "\"\n    ],\n    \"text\": \"")
		w.prose(5, 25)
		w.text("\",\n    \"created\": \"")
		w.time(false)
		w.text("\",\n    \"ok\": true\n  }")
	})
}

// UUIDs returns JSON with a UUID about every 200 bytes.
func UUIDs(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin("[", ",")
		w.text(`{"id":"`)
		w.uuid()
		w.text(`","name":"`)
		w.name(" ")
		w.text(`","text":"`)
		w.prose(14, 22)
		w.text(`","count":`)
		w.below(1000)
		w.text(`,"ok":true}`)
	})
}

// Escapes returns JSON that is dense in escapes of three syntaxes: \/, %2F and &amp;.
func Escapes(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin("[", ",")
		w.text(`{"url":"https:\/\/api.example.com\/`, w.word(), `\/`)
		w.below(1 << 20)
		w.text(`?q=`, w.word(), `%2F`, w.word(), `%20`, w.word(), `&amp;next=%2f`, w.word(), `%3D`, w.word(), `","say":"\"`)
		w.prose(1, 3)
		w.text(`\" \u2013 `, w.word(), ` &lt;`, w.word(), `&gt; &#39;`, w.word(), `&#39;\n"}`)
	})
}

// Repeated returns one line of JSON again and again: the easiest body to search.
func Repeated(_ uint64, size int) []byte {
	return fill(0, size, func(w *writer) {
		w.text(`{"id":12345,"name":"some name","url":"https://api.example.com/items/1",`,
			`"text":"A line, and one more.","ok":true},`)
	})
}
