package stub

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// echo is a service that repeats to its clients what they sent, as careless
// debugging endpoints do, and one that never answers.
func (s *Server) echo() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		headers := map[string]string{}
		for name, values := range r.Header {
			headers[name] = strings.Join(values, ", ")
			w.Header().Set("X-Echo-"+name, headers[name])
		}
		reply(w, map[string]any{"method": r.Method, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "headers": headers})
	})
	// The credential cut in two at every place, then byte by byte.
	mux.HandleFunc("GET /echo-chunks", func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get("Authorization")
		for i := range len(value) + 1 {
			say(w, fmt.Sprintf("cut at %d: ", i))
			say(w, value[:i])
			say(w, value[i:])
			say(w, " end\n")
		}
		for i := range len(value) {
			say(w, value[i:i+1])
		}
		say(w, " end\n")
	})
	mux.HandleFunc("GET /stall", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-s.Release:
		case <-r.Context().Done():
		}
	})
	return mux
}

// say writes text and sends it off.
func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}
