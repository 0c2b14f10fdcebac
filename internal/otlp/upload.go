package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	firstPause  = 500 * time.Millisecond // before a request is tried again; it doubles
	longest     = 5 * time.Second        // pause, whatever the collector asks for
	maxAttempts = 5
	// maxAnswer is how much of a response is read. A collector that sends more is cut off.
	maxAnswer = 64 << 10
)

// uploader sends requests to one endpoint.
type uploader struct {
	*endpoint
	client  *http.Client
	agent   string
	closing <-chan struct{} // nothing is tried again once it is closed
}

func newUploader(e *endpoint, version string, closing <-chan struct{}) *uploader {
	if e == nil {
		return nil
	}
	return &uploader{endpoint: e, agent: "aileron/" + version, closing: closing, client: &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // those of the environment may be the one of this or another session
			DialContext: (&net.Dialer{
				Timeout: longest,
			}).DialContext,
			TLSClientConfig: e.tls, TLSHandshakeTimeout: longest, ForceAttemptHTTP2: true,
			MaxConnsPerHost: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxAnswer, DisableCompression: true,
		},
		// A redirect would take the headers, and with them the credential, to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// statusError is returned for a response that is no success.
type statusError struct {
	status int
	pause  time.Duration // that the collector asks for
}

// Error has nothing that the collector sent but the number: it may echo the credential, or what a terminal obeys.
func (e *statusError) Error() string {
	return fmt.Sprintf("it answered %d %s", e.status, http.StatusText(e.status))
}

// mayTryAgain reports whether another attempt may succeed (OTLP, section Failures).
func mayTryAgain(err error) bool {
	var status *statusError
	if !errors.As(err, &status) {
		return true
	}
	switch status.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// send sends one request, several times if need be, and returns how many of its parts the collector rejected.
func (u *uploader) send(ctx context.Context, message []byte) (rejected int, err error) {
	body, err := u.encode(message)
	if err != nil {
		return 0, err
	}
	pause := firstPause
	for attempt := 1; ; attempt++ {
		rejected, err = u.post(ctx, body)
		if err == nil || attempt == maxAttempts || !mayTryAgain(err) || ctx.Err() != nil || u.isClosing() {
			return rejected, err
		}
		var status *statusError
		if errors.As(err, &status) {
			pause = max(pause, min(status.pause, longest))
		}
		u.wait(ctx, pause)
		pause = min(2*pause, longest)
	}
}

func (u *uploader) isClosing() bool {
	select {
	case <-u.closing:
		return true
	default:
		return false
	}
}

// wait waits for a pause. The end of the session ends it, and there is one more attempt.
func (u *uploader) wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-u.closing:
	case <-ctx.Done():
	}
}

func (u *uploader) encode(message []byte) ([]byte, error) {
	if !u.gzip {
		return message, nil
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(message)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// post makes one attempt.
func (u *uploader) post(ctx context.Context, body []byte) (rejected int, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url.String(), bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("its URL cannot be used")
	}
	req.Header = u.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", u.agent)
	if u.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := u.client.Do(req)
	if err != nil {
		return 0, withoutURL(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		seconds = min(max(seconds, 0), int(longest/time.Second))
		return 0, &statusError{res.StatusCode, time.Duration(seconds) * time.Second}
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, nil // it has accepted the request; sending it again would double its parts
	}
	return rejectedIn(answer), nil
}

// withoutURL returns the cause of an error of a client: the URL may have a credential.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New("it did not answer in time")
	}
	return err
}

// rejectedIn returns how many parts of a request were rejected, by its response: ExportTraceServiceResponse and
// ExportLogsServiceResponse have a partial success as field 1, of which field 1 is the number. The generated types of
// these two messages link gRPC. A response that cannot be parsed rejects nothing.
func rejectedIn(answer []byte) int {
	partial, _ := field(answer, protowire.BytesType)
	_, n := field(partial, protowire.VarintType)
	return int(min(n, maxBatch))
}

// field returns field 1 of a message, which has the given type.
func field(message []byte, want protowire.Type) (content []byte, number uint64) {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, 0
		}
		message = message[n:]
		if num == 1 && typ == want {
			if typ == protowire.BytesType {
				content, _ = protowire.ConsumeBytes(message)
				return content, 0
			}
			number, n = protowire.ConsumeVarint(message)
			if n < 0 {
				return nil, 0
			}
			return nil, number
		}
		if n = protowire.ConsumeFieldValue(num, typ, message); n < 0 {
			return nil, 0
		}
		message = message[n:]
	}
	return nil, 0
}
