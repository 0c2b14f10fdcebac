package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// readResponse reads the head of the final response to a request with method. Its
// body is an *h1Body or http.NoBody. There may be any number of interim responses, as a
// host sends them while it works; all heads together are bounded.
func (pc *persistConn) readResponse(method string, a *attempt) (*http.Response, error) {
	for {
		pc.nextHead()
		if _, err := pc.r.Peek(1); err != nil {
			return nil, err
		}
		a.gotByte.Store(true)
		var h headValidator
		head, err := pc.checkHead(&h)
		if err != nil {
			return nil, err
		}
		res, err := pc.parseResponse(head, &h, method)
		if err != nil {
			return nil, err
		}
		interim := res.StatusCode >= http.StatusContinue && res.StatusCode < http.StatusOK
		if !interim || res.StatusCode == http.StatusSwitchingProtocols {
			return res, nil
		}
	}
}

// checkHead waits for a whole head, validates it before it is parsed, and returns
// it. The buffer of pc.r grows with the head.
func (pc *persistConn) checkHead(h *headValidator) (string, error) {
	for start, seen := 0, 0; ; {
		buf, err := pc.peekBeyond(seen)
		if err != nil {
			return "", err
		}
		if bytes.IndexByte(buf[seen:], '\n') >= 0 {
			end := start + wire.CanonicalizeNames(buf[start:]) // the status line is no field
			head := string(buf[start:end])                     // all of it, as a rule
			for rest := head; rest != "" && !h.ended; {
				n := strings.IndexByte(rest, '\n') + 1
				h.line(rest[:n])
				rest = rest[n:]
				if h.broken != "" {
					return "", &headError{h.broken, h.lookalike}
				}
			}
			if h.ended {
				if start > 0 {
					head = string(buf[:end])
				}
				_, err := pc.r.Discard(end)
				return head, err
			}
			start = end
		}
		seen = len(buf)
		if start == 0 && !bytes.HasPrefix(buf, []byte(headPrefix)[:min(seen, len(headPrefix))]) {
			return "", &headError{rule: notHTTP}
		}
	}
}

// peekBeyond returns what has come, once that is more than seen bytes.
func (pc *persistConn) peekBeyond(seen int) ([]byte, error) {
	if seen >= maxResponseHead {
		return nil, &headError{rule: tooLarge}
	}
	if seen == pc.r.Size() {
		whole, _ := pc.r.Peek(seen)
		pc.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(whole)), pc), 2*seen)
	}
	if _, err := pc.r.Peek(seen + 1); err != nil {
		return nil, err
	}
	return pc.r.Peek(pc.r.Buffered())
}
