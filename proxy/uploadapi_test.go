package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const uploadsSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/calls","version":"1.0.0"},"tools":[{"name":"calls","operations":[
 {"name":"send","method":"POST","path":"/v1/files","hosts":["api.good.example"],"credential":"bearer",
   "body":"multipart","inputs":[{"name":"file","type":"file","required":true},
     {"name":"purpose","type":"string","required":true},{"name":"mask","type":"file"}]},
 {"name":"add","method":"POST","path":"/v1/all","hosts":["api.good.example"],"credential":"bearer",
   "body":"multipart","inputs":[{"name":"files","type":"files","required":true},{"name":"mask","type":"file"}]},
 {"name":"put","method":"PUT","path":"/v1/files/{id}","hosts":["api.good.example"],"credential":"bearer","body":"raw",
   "inputs":[{"name":"id","type":"string","required":true},{"name":"content","type":"file","required":true}]},
 {"name":"make","method":"POST","path":"/v1/things","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"title","type":"string"},{"name":"count","type":"integer"},{"name":"note","type":"string",
     "in":"query"}]}]}]}`

// part is a part of a body that an upstream received.
type part struct{ name, filename, kind, sum string }

// received is a request with files.
type received struct {
	parts  []part
	length int64
	kind   string
	err    error
}

// newUploads is a world with the operations of uploadsSpec, and what its upstream received.
func newUploads(t *testing.T, set ...func(*Config)) (*world, chan received) {
	seen := make(chan received, 8)
	w := newCalls(t, func(c *Config) {
		for _, change := range set {
			change(c)
		}
	}, func(_ http.ResponseWriter, r *http.Request) {
		in := received{length: r.ContentLength, kind: r.Header.Get("Content-Type")}
		defer func() { seen <- in }()
		kind, params, _ := mime.ParseMediaType(in.kind)
		if kind != "multipart/form-data" {
			var p part
			p.sum, in.err = digestOf(r.Body)
			in.parts = []part{p}
			return
		}
		for reader := multipart.NewReader(r.Body, params["boundary"]); in.err == nil; {
			next, err := reader.NextPart()
			if in.err = err; err != nil {
				break
			}
			p := part{name: next.FormName(), filename: next.FileName(), kind: next.Header.Get("Content-Type")}
			p.sum, in.err = digestOf(next)
			in.parts = append(in.parts, p)
		}
	})
	w.unread = true
	c := must.Get(spec.Load([]byte(callsManifest), []byte(uploadsSpec)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	w.plane.SetGrants(&Grants{Index: index, Scrub: w.plane.grants.Load().Scrub, Bound: w.plane.grants.Load().Bound})
	return w, seen
}

func digestOf(r io.Reader) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return fmt.Sprint(n, " ", hex.EncodeToString(sum.Sum(nil)[:8])), err
}

// sum returns what an upstream reports of a content.
func sum(content string) string {
	text, _ := digestOf(strings.NewReader(content))
	return text
}

// upload runs an operation with files behind the call, and returns the status and the body of the response.
func (w *world) upload(operation, args, files string, content io.Reader) (int, string) {
	w.t.Helper()
	line := strings.TrimSuffix(invocation(operation, args), "}") + `,"files":` + files + "}\n"
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.addr+operationsPath,
		io.MultiReader(strings.NewReader(line), content))
	must.Do(w.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "application/vnd.aileron.call.v1")
	req.Close = true
	res := must.Get(http.DefaultTransport.RoundTrip(req))(w.t)
	defer res.Body.Close()
	return res.StatusCode, string(must.Get(io.ReadAll(res.Body))(w.t))
}

func TestFilesFollowACall(t *testing.T) {
	w, seen := newUploads(t)
	status, text := w.upload("send", `{"purpose":"a\r\nb"}`, `[{"input":"file","filename":"a \"b\".png","size":5},`+
		`{"input":"mask","filename":"m.bin","content_type":"image/x-mask","size":0}]`, strings.NewReader("12\r\n3"))
	got := <-seen
	want := []part{{"purpose", "", "", sum("a\r\nb")}, {"file", `a %22b%22.png`, "image/png", sum("12\r\n3")},
		{"mask", "m.bin", "image/x-mask", sum("")}}
	if status != 200 || fmt.Sprint(got.parts) != fmt.Sprint(want) || got.err != io.EOF || got.length <= 0 {
		t.Errorf("%d %s: the upstream received %+v, want %+v", status, text, got, want)
	}
	status, text = w.upload("add", `{}`, `[{"input":"files","filename":"a","size":1},{"input":"mask","filename":"m",`+
		`"size":2},{"input":"files","filename":"a","size":0},{"input":"files","filename":"b.csv","size":3}]`,
		strings.NewReader("1mm234"))
	const bytes = "application/octet-stream"
	want = []part{{"files", "a", bytes, sum("1")}, {"mask", "m", bytes, sum("mm")}, {"files", "a", bytes, sum("")},
		{"files", "b.csv", "text/csv", sum("234")}}
	if got = <-seen; status != 200 || fmt.Sprint(got.parts) != fmt.Sprint(want) || got.err != io.EOF {
		t.Errorf("%d %s: the upstream received %+v, want %+v", status, text, got, want)
	}
	status, text = w.upload("put", `{"id":"7"}`, `[{"input":"content","filename":"a.html","size":3}]`,
		strings.NewReader("abc"))
	if got = <-seen; status != 200 || got.kind != "application/octet-stream" || got.length != 3 ||
		got.parts[0].sum != sum("abc") {
		t.Errorf("%d %s: the upstream received %+v", status, text, got)
	}
}

// A file that is a text of the operation is an argument: it is part of the call before anything is sent.
func TestATextComesFromAFile(t *testing.T) {
	w, seen := newUploads(t)
	status, text := w.upload("make", `{}`, `[{"input":"title","filename":"R.md","size":6},{"input":"note","size":3}]`,
		strings.NewReader("# ü\n\nn&o"))
	want := part{sum: sum(`{"title":"# ü\n\n"}`)}
	got := <-seen
	if status != 200 || fmt.Sprint(got.parts) != fmt.Sprint([]part{want}) || got.kind != "application/json" {
		t.Errorf("%d %s: the upstream received %+v, want %+v", status, text, got, want)
	}
	status, text = w.upload("send", `{}`, `[{"input":"purpose","size":2},{"input":"file","filename":"f.txt","size":3}]`,
		strings.NewReader("hi123"))
	parts := []part{{"purpose", "", "", sum("hi")}, {"file", "f.txt", "text/plain", sum("123")}}
	if got = <-seen; status != 200 || fmt.Sprint(got.parts) != fmt.Sprint(parts) || got.err != io.EOF {
		t.Errorf("%d %s: the upstream received %+v, want %+v", status, text, got, parts)
	}
	for _, content := range []string{"\xff", "\xc3"} {
		status, text = w.upload("make", `{}`, `[{"input":"title","size":1}]`, strings.NewReader(content))
		if status != 400 || !strings.Contains(text, "args.title: the file is no text in UTF-8") {
			t.Errorf("%q: %d %s", content, status, text)
		}
	}
}

// A boundary cannot be known to who makes a file, and is the same for the same call.
func TestABoundaryIsOfTheSession(t *testing.T) {
	const file = `[{"input":"file","size":1}]`
	w, seen := newUploads(t)
	kinds := map[string]int{}
	for _, w := range []struct {
		*world
		seen chan received
	}{{w, seen}, {w, seen}} {
		_, _ = w.upload("send", `{"purpose":"x"}`, file, strings.NewReader("1"))
		kinds[(<-w.seen).kind]++
	}
	other, seen := newUploads(t)
	_, _ = other.upload("send", `{"purpose":"x"}`, file, strings.NewReader("1"))
	if kinds[(<-seen).kind]++; len(kinds) != 2 {
		t.Errorf("the types of three equal calls, one of another session, are %v", kinds)
	}
}

// Who has seen the boundary of a call makes no other parts of it with the next file, in however many pieces it comes,
// nor with a value.
func TestAFileDoesNotEndItsPart(t *testing.T) {
	w, seen := newUploads(t)
	file := func(size int) string { return fmt.Sprintf(`[{"input":"file","size":%d}]`, size) }
	_, _ = w.upload("send", `{"purpose":"x","mask":"y"}`, file(1), strings.NewReader("1"))
	_, params, _ := mime.ParseMediaType((<-seen).kind)
	boundary := params["boundary"]
	evil := "1\r\n--" + boundary + "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nother\r\n--" +
		boundary + "--\r\n"
	for why, content := range map[string]io.Reader{
		"at once": strings.NewReader(evil), "by bytes": iotest.OneByteReader(strings.NewReader(evil)),
		"in halves": iotest.HalfReader(strings.NewReader(evil)),
	} {
		status, text := w.upload("send", `{"purpose":"x","mask":"y"}`, file(len(evil)), content)
		if status != 400 || !strings.Contains(text, "a file has the boundary of the request that it is sent in: file; send") {
			t.Errorf("%s: %d %s", why, status, text)
		}
	}
	inline := must.Get(json.Marshal(map[string]string{"purpose": "x", "mask": evil}))(t)
	status, text := w.upload("send", string(inline), file(1), strings.NewReader("1"))
	got := <-seen
	for got.err != io.EOF { // those that broke off
		got = <-seen
	}
	want := []part{{"purpose", "", "", sum("x")}, {"mask", "mask", "text/plain; charset=utf-8", sum(evil)},
		{"file", "file", "application/octet-stream", sum("1")}}
	if status != 200 || fmt.Sprint(got.parts) != fmt.Sprint(want) {
		t.Errorf("%d %s: the upstream received %+v, want %+v", status, text, got, want)
	}
}

// A file that changes while it is sent is never a whole request.
func TestAFileThatChangesBreaksTheRequest(t *testing.T) {
	for why, c := range map[string]struct {
		size    int
		content string
		want    string
	}{
		"shorter":       {9, "12345678", "file is shorter than the 9 bytes that the call names"},
		"longer":        {7, "12345678", "there are more bytes than the call names"},
		"long":          {300_000, strings.Repeat("x", 200_000), "file is shorter than"},
		"empty, longer": {0, "1", "there are more bytes than the call names"},
	} {
		w, seen := newUploads(t)
		status, text := w.upload("send", `{"purpose":"x"}`, fmt.Sprintf(`[{"input":"file","size":%d}]`, c.size),
			strings.NewReader(c.content))
		if status != 400 || !strings.Contains(text, c.want) || !strings.Contains(text, `"body_broken"`) {
			t.Errorf("%s: %d %s", why, status, text)
		}
		select {
		case got := <-seen:
			if got.err == io.EOF || got.err == nil {
				t.Errorf("%s: the upstream received a whole request: %+v", why, got)
			}
		default: // nothing was sent
		}
	}
}

func TestCallsWithFilesThatAreDenied(t *testing.T) {
	w, _ := newUploads(t)
	for _, c := range []struct{ operation, args, files, want string }{
		{"send", `{"purpose":"x"}`, `[]`, "files: it is not a list of 1 to 16 files"},
		{"send", `{"purpose":"x"}`, `[{"input":"file"}]`, "files[0].size: it is not a number of bytes"},
		{"send", `{"purpose":"x"}`, `[{"input":"file","size":-1}]`, "files[0].size: it is not a number of bytes"},
		{"send", `{"purpose":"x"}`, `[{"input":"file","size":1e999}]`, "files[0].size: it is not a number of bytes"},
		{"send", `{"purpose":"x"}`, `[{"input":"file","size":1,"path":"/etc/passwd"}]`, "files[0].path: unknown key"},
		{"send", `{"purpose":"x"}`, `[{"input":"file","size":1,"filename":"../a"}]`, "files[0].filename: it has a slash"},
		{"send", `{"purpose":"x"}`, `[{"input":"file","size":1},{"input":"file","size":1}]`, "args.file: it is given twice"},
		{"send", `{"purpose":"x","file":"t"}`, `[{"input":"file","size":1}]`, "args.file: it is given twice"},
		{"send", `{"purpose":"x"}`, `[{"input":"purpose","size":1}]`, "args.purpose: it is given twice"},
		{"add", `{"files":["t"]}`, `[{"input":"files","size":1}]`, "args.files: it is given twice"},
		{"add", `{}`, `[{"input":"mask","size":1}]`, "args.files: it is missing"},
		{"send", `{}`, `[{"input":"file","size":1}]`, "args.purpose: it is missing"},
		{"send", `{"purpose":"x"}`, `[{"input":"mask","size":1}]`, "args.file: it is missing"},
		{"make", `{}`, `[{"input":"count","size":1}]`,
			`files: the operation has no input \"count\" that is a file or a text`},
		{"make", `{}`, `[{"input":"title","size":1},{"input":"title","size":1}]`, "args.title: it is given twice"},
		{"make", `{}`, `[{"input":"title","size":1048577}]`, "files: the texts have more than 1048576 bytes"},
		{"make", `{}`, `[{"input":"title","size":1048576},{"input":"note","size":1}]`, "files: the texts have more than"},
		{"make", `{}`, `[{"input":"title","size":2}]`, "title has 1 bytes, and the call names 2"},
		{"make", `{}`, `[{"input":"title","size":0}]`, "there are more bytes than the call names"},
		{"send", `{}`, `[{"input":"file","size":1},{"input":"purpose","size":1}]`,
			"files: the text purpose follows a file: name it in front of that"},
		{"none", `{}`, `[{"input":"title","size":1}]`, "has no such operation"},
		{"put", `{"id":"7"}`, `[{"input":"content","size":1,"content_type":"text/html"}]`,
			"args.content: its content_type is not application/octet-stream"},
	} {
		status, text := w.upload(c.operation, c.args, c.files, strings.NewReader("1"))
		if status/100 != 4 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %s: %d %s, want %q", c.operation, c.args, c.files, status, text, c.want)
		}
	}
	status, text := w.call(strings.TrimSuffix(invocation("send", `{"purpose":"x"}`), "}") +
		`,"files":[{"input":"file","size":1}]}` + "\n1")
	if status != 400 {
		t.Errorf("files behind a call of the type of JSON: %d %s", status, text)
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A file streams: what the session holds of it is little, and the same for a large one.
func TestALargeFileIsNotHeld(t *testing.T) {
	const size = 256 << 20
	w, seen := newUploads(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	status, text := w.upload("put", `{"id":"7"}`, fmt.Sprintf(`[{"input":"content","size":%d}]`, size),
		io.LimitReader(zeros{}, size))
	runtime.ReadMemStats(&after)
	if got := <-seen; status != 200 || got.length != size || !strings.HasPrefix(got.parts[0].sum, fmt.Sprint(size)) {
		t.Fatalf("%d %s: %+v", status, text, got)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB for a file of %d MiB", grown>>20, size>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A body that is longer than any may be is denied before a byte of it is read.
func TestFilesKeepToTheLimitOfBodies(t *testing.T) {
	w, _ := newUploads(t, func(c *Config) { c.Limits.Wire.Body = 1 << 20 })
	status, text := w.upload("put", `{"id":"7"}`, `[{"input":"content","size":1048577}]`, strings.NewReader("1"))
	if status != 413 || !strings.Contains(text, "the files make a body of 1048577 bytes, and at most 1048576 are sent") ||
		len(w.requests()) != 0 {
		t.Errorf("%d %s", status, text)
	}
}

// A file that waits for a person is not slow, and is sent whole when they have approved it.
func TestAFileThatWaitsIsNotSlow(t *testing.T) {
	const span, size = 2 * time.Second, maxDigested + 4<<20
	a := newAsks(t, time.Hour, hello, func(c *Config) { c.Limits.Wire.Progress = span })
	asking := strings.Replace(uploadsSpec, `"body":"raw",`, `"body":"raw","approval":"required",`, 1)
	a.index = must.Get(spec.NewIndex([]*spec.Connector{must.Get(spec.Load([]byte(callsManifest), []byte(asking)))(t)}))(t)
	a.grant("api_key/x/me")
	line := strings.TrimSuffix(invocation("put", `{"id":"7"}`), "}") +
		fmt.Sprintf(`,"files":[{"input":"content","size":%d}]}`, size) + "\n"
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.addr+operationsPath,
		io.MultiReader(strings.NewReader(line), io.LimitReader(zeros{}, size))))(t)
	req.ContentLength = int64(len(line)) + size
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "application/vnd.aileron.call.v1")
	responded := make(chan string)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			responded <- err.Error()
			return
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		responded <- string(text)
	}()
	q := a.pending(1)[0]
	<-time.After(2 * span)
	a.approve(q.ID)
	text := <-responded
	if !strings.Contains(text, `"upstream_status":200`) || len(a.bodies) != 1 || len(a.bodies[0]) != size {
		t.Errorf("%s; the upstream received %d requests", text, len(a.bodies))
	}
}
