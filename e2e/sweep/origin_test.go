package sweep

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// hosts are the origin's, without .sweep.test: one for each connector, one that is not decrypted, one that no
// connector names, and that of a login.
var hosts = []string{"bearer", "query", "basic", "path", "other", "opaque", "free", "login"}

// forges are the hosts of a forge, and of its API, which the origin is, too.
var forges = []string{"github.com", "api.github.com"}

// startOrigin starts an origin that repeats the credentials in all forms, and has canaries in everything that a
// response consists of.
func startOrigin(t *testing.T, c *canaries) *stub.Server {
	script := stub.Script{Services: map[string]http.Handler{}}
	o := &origin{t: t, c: c}
	for _, host := range hosts {
		script.Services[host+".sweep.test"] = http.HandlerFunc(o.serve)
	}
	script.Services[forges[0]] = http.NotFoundHandler() // nothing is public
	script.Services[forges[1]] = http.HandlerFunc(o.serve)
	s := stub.Start(t, script)
	o.release = s.Release
	return s
}

type origin struct {
	t       *testing.T
	c       *canaries
	release <-chan struct{}

	mu    sync.Mutex
	asked int // for tokens
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	switch at := r.URL.Path; {
	case strings.HasSuffix(at, "/forms"):
		o.forms(w)
	case strings.HasSuffix(at, "/packed"):
		o.packed(w)
	case strings.HasSuffix(at, "/cut"):
		o.cut(w)
	case strings.HasSuffix(at, "/stall"):
		select {
		case <-o.release:
		case <-r.Context().Done():
		}
	case at == "/token":
		o.token(w, r)
	case strings.HasSuffix(at, "/live"):
		o.live(w, r)
	case strings.HasPrefix(at, "/sweep.Service/"):
		o.grpc(w)
	default:
		o.echo(w, r)
	}
}

// fields sets a canary in each kind of field.
func (o *origin) fields(h http.Header) {
	h.Set("X-Answer", o.c.text("a response field"))
	h.Set("Set-Cookie", "c="+o.c.text("a response cookie")+"; Path=/")
	h.Set("Location", "/v1/next?q="+o.c.text("a query"))
}

func (o *origin) early(w http.ResponseWriter) {
	w.Header().Set("Link", "</"+o.c.text("an early hint")+">; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Del("Link")
}

// echo repeats the request, and has values that the connector declares.
func (o *origin) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.early(w)
	o.fields(w.Header())
	for name, values := range r.Header {
		w.Header().Set("X-Echo-"+name, strings.Join(values, ", "))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Trailer", "X-End")
	raw, _ := json.Marshal(map[string]any{"marker": marker, "title": "t " + o.c.secret("bearer") + " t",
		"hashed": o.c.text("a redacted audit value"), "text": o.c.text("a response body"), "url": r.URL.String(),
		"headers": r.Header, "body": string(body)})
	_, _ = w.Write(raw)
	w.Header().Set("X-End", o.c.text("a response trailer")+" "+o.c.secret("bearer"))
}

// forms repeats every secret in every form, in fields and in the body.
func (o *origin) forms(w http.ResponseWriter) {
	o.fields(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, name := range []string{"bearer", "query", "basic", "path"} {
		for _, form := range forms(o.c.secret(name)) {
			if !strings.Contains(form, "\n") {
				w.Header().Add("X-Form", form)
			}
		}
	}
	for _, name := range []string{"bearer", "query", "basic", "path"} {
		_, _ = io.WriteString(w, strings.Join(forms(o.c.secret(name)), "\n| ")+"\n| "+
			base64.StdEncoding.EncodeToString([]byte("user:"+o.c.secret(name)))+"\n")
	}
	_, _ = io.WriteString(w, o.c.text("a response body"))
}

// packed answers with a compressed secret, which was not asked for.
func (o *origin) packed(w http.ResponseWriter) {
	o.fields(w.Header())
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.WriteString(z, o.c.secret("bearer")+o.c.text("a response body"))
	_ = z.Close()
}

// cut ends in the middle of a body.
func (o *origin) cut(w http.ResponseWriter) {
	o.fields(w.Header())
	w.Header().Set("Content-Length", "100000")
	_, _ = io.WriteString(w, o.c.text("a response body")+o.c.secret("bearer"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// grpc answers a call with one message and trailers.
func (o *origin) grpc(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("X-Meta", o.c.text("gRPC metadata"))
	_, _ = w.Write(message(o.c.text("a gRPC message") + o.c.secret("bearer")))
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "3")
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", o.c.text("gRPC metadata")+" "+o.c.secret("bearer"))
}

// message frames a message of gRPC.
func message(text string) []byte { return append([]byte{0, 0, 0, 0, byte(len(text))}, text...) }

// live sends one message of a WebSocket, reads one, and closes with a reason.
func (o *origin) live(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // over HTTP/2
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+accept(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
	_, _ = conn.Write(frame(1, o.c.text("a WebSocket message")+" "+o.c.secret("bearer")))
	_, _ = readFrame(buffered.Reader)
	_, _ = conn.Write(frame(8, "\x03\xe8"+o.c.text("a WebSocket message")))
	_, _ = bufio.NewReader(conn).ReadByte()
}
