package auditpage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"time"
)

// problem is an error as the page shows it.
type problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// problemOf returns err as the page shows it, and the zero value for nil.
func problemOf(err error) problem {
	if err == nil {
		return problem{}
	}
	message, advice := describe(err)
	return problem{Error: message, Hint: advice}
}

// respond calls handle, and responds with its error unless a part of the response was written.
func (p *Page) respond(w http.ResponseWriter, r *http.Request, handle func(http.ResponseWriter, *http.Request) error) {
	var once wroteOnce
	once.ResponseWriter = w
	err := handle(&once, r)
	if err == nil || once.wrote || r.Context().Err() != nil {
		return
	}
	status := http.StatusServiceUnavailable
	var bad badQuery
	switch {
	case errors.As(err, &bad):
		status = http.StatusBadRequest
	case errors.As(err, new(refusal)):
		status = http.StatusConflict
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no audit log: it begins with the next session")
	default:
		p.logs.drop()
	}
	body := problemOf(err)
	if status == http.StatusServiceUnavailable {
		p.reports.once(body.Error)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// wroteOnce records whether a response has begun.
type wroteOnce struct {
	http.ResponseWriter
	wrote bool
}

func (w *wroteOnce) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

func (w *wroteOnce) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON writes one value.
func writeJSON(w http.ResponseWriter, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(raw)
	return err
}

// stream writes values as lines.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return stream{w, http.NewResponseController(w)}
}

// send writes one value and flushes it.
func (s stream) send(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(append(raw, '\n')); err != nil {
		return err
	}
	return s.control.Flush()
}
