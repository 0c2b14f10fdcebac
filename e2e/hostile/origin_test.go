package hostile

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// server is the origin under all its names.
type server struct {
	roots   string            // file
	resolve map[string]string // "host:port" to the address
	payload []byte            // JSON of records
	hard    []byte            // JSON that is hard to search
	servers []*http.Server
	stop    context.CancelFunc
}

func startServer(dir string) (*server, error) {
	root, config, err := stub.Authority()
	if err != nil {
		return nil, err
	}
	s := &server{roots: filepath.Join(dir, "roots.pem"), resolve: map[string]string{}, payload: payload(false),
		hard: payload(true)}
	if err := os.WriteFile(s.roots, root, 0o600); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	mux.HandleFunc("/v1/get", s.get)
	mux.HandleFunc("/v1/endless", s.endless)
	mux.HandleFunc("/v1/events", func(w http.ResponseWriter, r *http.Request) { s.events(ctx, w, r) })
	mux.HandleFunc("/v1/deaf", func(_ http.ResponseWriter, r *http.Request) { wait(ctx, r) })
	mux.HandleFunc("/v1/put", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) { s.socket(ctx, w, r) })
	for host, h2 := range map[string]bool{hostH1: false, hostH2: true} {
		l, at, err := listen()
		if err != nil {
			return nil, err
		}
		var protocols http.Protocols
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(h2)
		srv := &http.Server{Handler: mux, Protocols: &protocols, ReadHeaderTimeout: time.Minute,
			ErrorLog:  log.New(io.Discard, "", 0),
			HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 2000},
			TLSConfig: config.Clone()}
		s.servers = append(s.servers, srv)
		s.resolve[host+":443"] = at.String()
		go func() { _ = srv.ServeTLS(l, "", "") }()
	}
	return s, nil
}

func (s *server) close() {
	if s == nil {
		return
	}
	s.stop()
	for _, srv := range s.servers {
		_ = srv.Close()
	}
}

func wait(ctx context.Context, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}

// payload is JSON of records. What is hard has escapes of every family between
// hexadecimal and base64.
func payload(hard bool) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := 0; b.Len() < mib; i++ {
		var raw [24]byte
		for j := range raw {
			raw[j] = byte(r.IntN(256))
		}
		if !hard {
			fmt.Fprintf(&b, `{"id":%d,"name":"item %d","state":"open","count":%d,`+
				`"text":"one of many items of this list, the way that APIs give them"},`+"\n", i, r.Uint32(), r.IntN(100))
			continue
		}
		fmt.Fprintf(&b, `{"id":%d,"sha":"%x","blob":"%s",`+
			`"url":"https:\/\/x.example\/%%2F%d?q=%%20\u00e9&amp;v=%d","text":"line\none \"%d\" of many"},`+"\n",
			i, raw, base64.StdEncoding.EncodeToString(raw[:]), r.Uint32(), r.Uint32(), r.Uint64())
	}
	return b.Bytes()[:mib]
}

// get answers with n bytes, their length announced.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(n))
	for n > 0 {
		part := s.payload[:min(n, len(s.payload))]
		if _, err := w.Write(part); err != nil {
			return
		}
		n -= len(part)
	}
}

// endless answers until its client ends it.
func (s *server) endless(w http.ResponseWriter, r *http.Request) {
	part := s.payload
	if r.URL.Query().Has("hard") {
		part = s.hard
	}
	w.Header().Set("Content-Type", "application/json")
	for {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// events sends one event, and then nothing.
func (s *server) events(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {\"n\":1}\n\n")
	_ = http.NewResponseController(w).Flush()
	wait(ctx, r)
}

// socket accepts a WebSocket and sends binary frames of 60000 bytes, however
// much the client reads; with ?quiet it sends nothing.
func (s *server) socket(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+
		"websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	if r.URL.Query().Has("quiet") {
		<-ctx.Done()
		return
	}
	const size = 60000
	for {
		if _, err := conn.Write(append([]byte{0x82, 126, size >> 8, size & 0xff}, s.payload[:size]...)); err != nil {
			return
		}
	}
}
